// Views of an op's operands as LibTorch tensors, in the order that the graph lists them, and of the fields of buckets.
// Must not know what is computed.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/InferenceMode.h>

#include <cstdint>
#include <string_view>

#include "runtime/executors/body.hpp"

namespace tandem {

// Bytes as a tensor of the processor that works on them.
at::Tensor tensor_at(Processor processor, void* begin, at::IntArrayRef shape, at::ScalarType type);

// Nothing where they are the same place.
void copy_bytes(const BodyCall& call, std::byte* from, std::byte* to, std::int64_t bytes);

// The fields of a flat bucket of parameters or gradients at an address.
class Bucket {
 public:
  Bucket() = default;
  Bucket(const Layout& layout, std::byte* begin, Processor processor, DType type)
      : layout_(&layout), begin_(begin), processor_(processor), type_(type) {}
  // The network's numbers alone,
  at::Tensor operator[](std::string_view field) const;
  // or as programs see them: with rows that pad.
  at::Tensor field(std::size_t place) const;
  std::byte* begin_of(std::size_t place) const;
  bool is_there() const { return layout_ != nullptr; }
  const Layout& layout() const { return *layout_; }
  // Sets what no field covers to zero, so that a bucket's bytes depend on its fields alone.
  void zero_padding() const;

 private:
  const Layout* layout_ = nullptr;
  std::byte* begin_ = nullptr;
  Processor processor_ = Processor::Host;
  DType type_ = DType::F32;
};

// Hands out the operands of a call one after another. For as long as it lives, no autograd graph is recorded.
class Operands {
 public:
  explicit Operands(BodyCall& call) : call_(call) {}
  // In the network's precision, unless a type is named.
  at::Tensor read(at::IntArrayRef shape) { return read(shape, precision()); }
  at::Tensor read(at::IntArrayRef shape, at::ScalarType type);
  at::Tensor write(at::IntArrayRef shape) { return write(shape, precision()); }
  at::Tensor write(at::IntArrayRef shape, at::ScalarType type);
  at::ScalarType precision() const;
  // What the loss is multiplied by, a scalar that is the last operand of its backward; undefined: there is none.
  at::Tensor loss_scale() const;
  Bucket read_bucket();
  Bucket write_bucket();
  std::int64_t size(std::size_t index) const { return call_.work.sizes.at(index); }
  BodyCall& call() { return call_; }

 private:
  c10::InferenceMode no_autograd_;
  BodyCall& call_;
  std::size_t next_read_ = 0, next_write_ = 0;
};

// Event::result of a body: the number in a tensor of one, as the bits of a double, or an integer as it is. On the
// device, once kernels have run.
std::int64_t give_result(BodyCall& call, const at::Tensor& number);
// `late_result`: BodyCall's.
std::int64_t give_result(Processor processor, std::int64_t* late_result, const at::Tensor& number);

}  // namespace tandem
