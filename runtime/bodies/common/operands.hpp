// Views of an op's operands as LibTorch tensors, in the order that the graph lists them, and of the fields of buckets.
// Must not know what is computed.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/InferenceMode.h>

#include <cstdint>
#include <string_view>

#include "runtime/executors/body.hpp"

namespace tandem {

// The fp32 fields of a flat bucket of parameters or gradients at an address.
class Bucket {
 public:
  Bucket() = default;
  Bucket(const Layout& layout, std::byte* begin) : layout_(&layout), begin_(begin) {}
  at::Tensor operator[](std::string_view field) const;
  const Layout& layout() const { return *layout_; }
  // Sets what no field covers to zero, so that a bucket's bytes depend on its fields alone.
  void zero_padding() const;

 private:
  const Layout* layout_ = nullptr;
  std::byte* begin_ = nullptr;
};

// Hands out the operands of a call one after another. For as long as it lives, no autograd graph is recorded.
// Throws DeviceError for a precision other than fp32, the only one that bodies perform so far.
class Operands {
 public:
  explicit Operands(BodyCall& call);
  at::Tensor read(at::IntArrayRef shape, at::ScalarType type = at::kFloat);
  at::Tensor write(at::IntArrayRef shape, at::ScalarType type = at::kFloat);
  Bucket read_bucket();
  Bucket write_bucket();
  std::int64_t size(std::size_t index) const { return call_.work.sizes.at(index); }
  BodyCall& call() { return call_; }

 private:
  c10::InferenceMode no_autograd_;
  BodyCall& call_;
  std::size_t next_read_ = 0, next_write_ = 0;
};

// The gradient of a bucket: written fresh by the first micro-batch, added to by later ones, as autograd accumulates.
class Gradients {
 public:
  Gradients(Bucket bucket, bool accumulates);
  // Gradients of weight [outputs, inputs] and bias [outputs] of y = x weight^T + bias, given y's.
  void linear(const char* name, const at::Tensor& grad, const at::Tensor& input) const;
  // Of a weight [outputs, inputs] alone; `weight` is its full name.
  void weight(const char* weight, const at::Tensor& grad, const at::Tensor& input) const;
  // Of a norm with these parameters. Returns its input's gradient, a temporary.
  at::Tensor norm(const char* name, const at::Tensor& grad, const at::Tensor& input, const at::Tensor& mean,
                  const at::Tensor& rstd, const Bucket& parameters) const;
  // Sum over rows of a [rows, ...] tensor.
  void row_sum(const char* name, const at::Tensor& rows) const;
  void add(const char* name, const at::Tensor& gradient) const;

 private:
  Bucket bucket_;
  bool accumulates_;
};

}  // namespace tandem
