#include "runtime/bodies/common/tiled_loss.hpp"

#include <ATen/core/Reduction.h>
#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/nll_loss_forward.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "core/workloads/common/tiled_loss.hpp"

namespace tandem {
namespace {

// The first tile writes, later ones add.
void add_weight_gradient(at::Tensor sum, const at::Tensor& logits_gradient, const at::Tensor& input, bool first) {
  if (first)
    at::mm_out(sum, logits_gradient.t(), input);
  else
    at::addmm_out(sum, sum, logits_gradient.t(), input);
}

void add_bias_gradient(at::Tensor sum, const at::Tensor& logits_gradient, bool first) {
  if (first)
    at::sum_out(sum, logits_gradient, 0);
  else
    sum.add_(at::sum(logits_gradient, 0));
}

struct Tile {
  at::Tensor input, targets;
  std::int64_t begin = 0;
};

void write_gradients(const TransformerCall& call, const Tile& tile, const Decoder& decoder,
                     const at::Tensor& log_probabilities, const at::Tensor& target_count, at::Tensor logits,
                     const DecoderGradients& gradients) {
  cross_entropy_backward(logits, log_probabilities, tile.targets, target_count, call.micro_batches,
                         gradients.loss_scale);
  linear_input_gradient(gradients.input.narrow(0, tile.begin, tile.input.size(0)), logits, decoder.weight);
  add_weight_gradient(gradients.decoder.weight, logits, tile.input, tile.begin == 0);
  if (decoder.bias.defined()) add_bias_gradient(gradients.decoder.bias, logits, tile.begin == 0);
}

}  // namespace

at::Tensor tiled_cross_entropy(const TransformerCall& call, const at::Tensor& input, const Decoder& decoder,
                               const at::Tensor& targets, const DecoderGradients* gradients) {
  const at::Tensor target_count = targets.ne(kIgnoredTarget).to(at::kFloat).sum();
  at::Tensor loss = at::zeros({}, target_count.options()), tile_loss = at::empty({}, target_count.options());
  const std::int64_t rows = tokens_a_tile(call.tokens(), call.loss_tiles);
  for (std::int64_t begin = 0; begin < call.tokens(); begin += rows) {
    const std::int64_t tokens = std::min(rows, call.tokens() - begin);
    const Tile tile{input.narrow(0, begin, tokens), targets.narrow(0, begin, tokens), begin};
    const at::Tensor logits = decoder.bias.defined() ? at::addmm(decoder.bias, tile.input, decoder.weight.t())
                                                     : at::mm(tile.input, decoder.weight.t());
    at::Tensor log_probabilities = at::empty(logits.sizes(), target_count.options());
    at::_log_softmax_out(log_probabilities, logits.to(at::kFloat), 1, /*half_to_float=*/false);
    at::Tensor counted = at::empty({}, target_count.options());
    at::nll_loss_forward_out(tile_loss, counted, log_probabilities, tile.targets, {}, at::Reduction::Sum,
                             kIgnoredTarget);
    loss.add_(tile_loss);
    if (gradients != nullptr) write_gradients(call, tile, decoder, log_probabilities, target_count, logits, *gradients);
  }
  return loss.div_(target_count);
}

void hand_on_weight_gradient(Operands& operands, const TransformerCall& call, const Gradients& gradients,
                             const at::Tensor& weight_gradient) {
  if (call.tied)
    operands.write({call.vocabulary, call.hidden}).copy_(weight_gradient);
  else
    gradients.add("output.weight", weight_gradient);
}

}  // namespace tandem
