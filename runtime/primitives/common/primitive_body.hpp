// What performs a primitive of core/model/primitives with LibTorch, and what it must equal: one file each, registered
// by its last line. Must not know modules, ops or where operands are.
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>
#include <vector>

#include "core/model/passes.hpp"
#include "runtime/primitives/common/random_key.hpp"

namespace tandem {

// Where a gradient goes that a call computes: the first is written, later ones are added.
class GradientOut {
 public:
  GradientOut() = default;
  // `contribution`: what other modules made of a weight's gradient, which is summed first.
  GradientOut(GradientTarget::Mode mode, at::Tensor target, at::Tensor base, at::Tensor contribution = {})
      : mode_(mode), target_(std::move(target)), base_(std::move(base)), contribution_(std::move(contribution)) {}
  bool wanted() const { return mode_ != GradientTarget::Mode::None && mode_ != GradientTarget::Mode::Alias; }
  bool adds() const {
    return mode_ == GradientTarget::Mode::Add || mode_ == GradientTarget::Mode::AddBase || contribution_.defined();
  }
  const at::Tensor& target() const { return target_; }
  const at::Tensor& base() const { return base_; }  // AddBase only
  // The same of a view of what it goes to.
  template <typename View>
  GradientOut viewed(const View& view) const {
    const auto seen = [&](const at::Tensor& tensor) { return tensor.defined() ? view(tensor) : tensor; };
    return {mode_, seen(target_), seen(base_), seen(contribution_)};
  }
  // Takes a gradient that was made apart, and may be written to.
  void take(at::Tensor gradient) const;
  // `write(out)` makes it where it goes if it is the first, else apart.
  template <typename Write>
  void make(const Write& write) const {
    if (!adds()) return write(target_);
    const at::Tensor apart = like(target_);
    write(apart);
    take(apart);
  }

 private:
  static at::Tensor like(const at::Tensor& tensor);
  GradientTarget::Mode mode_ = GradientTarget::Mode::None;
  at::Tensor target_, base_, contribution_;
};

// Of one call. Tensors that a pass does not have are undefined.
struct Arguments {
  const Call& call;
  Wanted wanted;
  std::vector<at::Tensor> in, out, weights, saved;
  at::Tensor output_gradient;
  std::vector<GradientOut> input_gradients, weight_gradients;
  // Of a loss, whose gradient is divided by the number and multiplied by the scale, if there is one.
  std::int64_t micro_batches = 1;
  at::Tensor loss_scale;
  RandomKey random;
};

// Of one call in functional LibTorch. Operands are contiguous, as a body's are.
struct ReferenceCall {
  const Call& call;
  std::vector<at::Tensor> in, weights;
  RandomKey random;
};

struct PrimitiveBodyEntry {
  std::string_view name;
  void (*forward)(Arguments&);
  void (*backward)(Arguments&);  // null: it has none
  // By functional LibTorch, under autograd, of inputs and weights: the outputs. What is carried from step to step is
  // written in place, as a body does.
  std::vector<at::Tensor> (*reference)(const ReferenceCall&);
};

const std::vector<const PrimitiveBodyEntry*>& primitive_bodies();
const PrimitiveBodyEntry* find_primitive_body(std::string_view name);

}  // namespace tandem

// The last line of runtime/primitives/<name>.cpp. CMake's generated table names <name>_primitive_body_entry for each.
#define TANDEM_PRIMITIVE_BODY(NAME, FORWARD, BACKWARD, REFERENCE)                            \
  namespace tandem {                                                                         \
  extern const PrimitiveBodyEntry NAME##_primitive_body_entry;                               \
  const PrimitiveBodyEntry NAME##_primitive_body_entry{#NAME, FORWARD, BACKWARD, REFERENCE}; \
  }
