#include <ATen/core/Reduction.h>
#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/nll_loss_forward.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "runtime/primitives/common/cross_entropy.hpp"
#include "runtime/primitives/common/primitive_body.hpp"

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

struct Decoder {
  at::Tensor weight;  // [outputs, inputs]
  at::Tensor bias;    // [outputs]; undefined: none
};

Decoder decoder_of(const Call& call, const std::vector<at::Tensor>& in, const std::vector<at::Tensor>& weights) {
  const bool shared = in.size() > 2, bias = call.how.integer("bias") != 0;
  return {shared ? in[2] : weights[0], bias ? weights.back() : at::Tensor()};
}

std::int64_t counting_columns(const Call& call) { return call.how.integer("outputs") - call.how.integer("padding", 0); }

at::Tensor logits_of(const Decoder& decoder, const at::Tensor& input) {
  return decoder.bias.defined() ? at::addmm(decoder.bias, input, decoder.weight.t())
                                : at::mm(input, decoder.weight.t());
}

void write_gradients(const Arguments& a, const Tile& tile, const at::Tensor& weight,
                     const at::Tensor& log_probabilities, const at::Tensor& target_count, const at::Tensor& logits) {
  cross_entropy_backward(logits, log_probabilities, tile.targets, target_count, a.micro_batches, a.loss_scale);
  at::Tensor input_gradient = a.saved[0].narrow(0, tile.begin, tile.input.size(0));
  at::mm_out(input_gradient, logits, weight);
  add_weight_gradient(a.saved[1], logits, tile.input, tile.begin == 0);
  if (a.saved.size() > 2) add_bias_gradient(a.saved[2], logits, tile.begin == 0);
}

// With the gradients of loss / micro_batches, times the loss scale if there is one, in training.
void forward(Arguments& a) {
  const Decoder decoder = decoder_of(a.call, a.in, a.weights);
  const at::Tensor& input = a.in[0];
  const at::Tensor targets = a.in[1].flatten();
  const at::Tensor target_count = targets.ne(kIgnoredTarget).to(at::kFloat).sum();
  at::Tensor loss = at::zeros({}, target_count.options()), tile_loss = at::empty({}, target_count.options());
  const std::int64_t tokens = input.size(0), tiles = a.call.how.integer("tiles"), rows = (tokens + tiles - 1) / tiles;
  const std::int64_t columns = counting_columns(a.call);
  for (std::int64_t begin = 0; begin < tokens; begin += rows) {
    const std::int64_t count = std::min(rows, tokens - begin);
    const Tile tile{input.narrow(0, begin, count), targets.narrow(0, begin, count), begin};
    const at::Tensor logits = logits_of(decoder, tile.input);
    at::Tensor log_probabilities = at::empty({count, columns}, target_count.options());
    at::_log_softmax_out(log_probabilities, counting_logits(logits, columns), 1, /*half_to_float=*/false);
    at::Tensor counted = at::empty({}, target_count.options());
    at::nll_loss_forward_out(tile_loss, counted, log_probabilities, tile.targets, {}, at::Reduction::Sum,
                             kIgnoredTarget);
    loss.add_(tile_loss);
    if (a.wanted.any()) write_gradients(a, tile, decoder.weight, log_probabilities, target_count, logits);
  }
  a.out[0] = loss.div_(target_count);
}

// What forward made goes where it belongs; the input's is read where it lies.
void backward(Arguments& a) {
  if (a.input_gradients[0].wanted()) a.input_gradients[0].take(a.saved[0]);
  if (a.input_gradients.size() > 2 && a.input_gradients[2].wanted()) a.input_gradients[2].take(a.saved[1]);
  for (std::size_t i = 0; i < a.weight_gradients.size(); ++i)
    if (a.weight_gradients[i].wanted())
      a.weight_gradients[i].take(a.saved[a.saved.size() - a.weight_gradients.size() + i]);
}

// Of all tokens at once.
std::vector<at::Tensor> reference(const ReferenceCall& c) {
  const at::Tensor logits = logits_of(decoder_of(c.call, c.in, c.weights), c.in[0]);
  return {at::cross_entropy_loss(counting_logits(logits, counting_columns(c.call)), c.in[1].flatten())};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(tiled_loss, forward, backward, reference)
