// What a module gives in functional LibTorch, under autograd: its calls one after another, by the primitives'
// references. Must not know passes, networks or where values lie.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "core/model/module.hpp"
#include "runtime/primitives/common/random_key.hpp"

namespace tandem {

struct ReferenceValues {
  std::vector<at::Tensor> outputs;
  at::Tensor own_loss;        // fp32 scalars: the network's own loss,
  at::Tensor auxiliary_loss;  // and the sum of those beside it. Undefined: the module has none
  at::Tensor scores;          // what its own loss reads first: logits
};

// `inputs` by port, `weights` and `carried` by place, contiguous; what is carried is left as the next step finds it.
// `random`: the module's own.
ReferenceValues walk_reference(const Module& module, const std::vector<at::Tensor>& inputs,
                               const std::vector<at::Tensor>& weights, const RandomKey& random,
                               const std::vector<at::Tensor>& carried = {});

// The sum of two losses, either of which may be undefined.
at::Tensor sum_of_losses(const at::Tensor& a, const at::Tensor& b);

}  // namespace tandem
