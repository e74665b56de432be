// The output layer and its cross entropy over a tile of the tokens at a time (core/workloads/common/tiled_loss.hpp).
#pragma once

#include <ATen/core/Tensor.h>

#include "runtime/bodies/common/networks.hpp"

namespace tandem {

struct Decoder {
  at::Tensor weight;  // [vocabulary, hidden]
  at::Tensor bias;    // [vocabulary]; undefined: none
};

// Gradients of loss / micro_batches, times the loss scale if there is one (undefined: none).
struct DecoderGradients {
  at::Tensor input;  // [tokens, hidden]
  Decoder decoder;
  at::Tensor loss_scale;
};

// Mean cross entropy of input [tokens, hidden] times the weight over targets other than kIgnoredTarget, a scalar.
// Writes the gradients, unless there are none to write.
at::Tensor tiled_cross_entropy(const TransformerCall& call, const at::Tensor& input, const Decoder& decoder,
                               const at::Tensor& targets, const DecoderGradients* gradients);

// In the backward: the weight's gradient to its place, which is the op's next write if the weight is tied.
void hand_on_weight_gradient(Operands& operands, const TransformerCall& call, const Gradients& gradients,
                             const at::Tensor& weight_gradient);

}  // namespace tandem
