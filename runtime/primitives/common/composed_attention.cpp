#include <ATen/TensorOperators.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tanh_backward.h>

#include "runtime/primitives/common/attention_pieces.hpp"
#include "runtime/primitives/common/number.hpp"

namespace tandem {
namespace {

// [batch heads, positions, size]
at::Tensor merged(const at::Tensor& heads) { return heads.contiguous().flatten(0, 1); }

// scores = scale query key^T, and of a cap, its tangent.
void scores_out(at::Tensor scores, const AttentionCall& call, const Arguments& a) {
  at::bmm_out(scores, merged(call.of_queries(a.in[0])), merged(call.repeated(call.of_keys(a.in[1]))).transpose(1, 2));
  if (call.scale() != 1) multiply_by(scores, call.scale());
  if (call.sizes.softcap > 0) scores.div_(call.sizes.softcap).tanh_();
}

at::Tensor by_head(const at::Tensor& scores, const AttentionCall& call) {
  return scores.view({call.sizes.batch, call.sizes.heads, call.sizes.queries, call.sizes.keys});
}

// From the gradient of scores as they go into the softmax to that of the product.
void through_scores(at::Tensor grad, const AttentionCall& call, const Arguments& a) {
  if (call.sizes.softcap > 0) {
    const at::Tensor tangent = at::empty_like(grad);
    scores_out(tangent, call, a);
    multiply_by(grad, call.sizes.softcap);
    at::tanh_backward_out(grad, grad, tangent);
    grad.div_(call.sizes.softcap);
  }
  if (call.scale() != 1) multiply_by(grad, call.scale());
}

at::Tensor unmerged(const at::Tensor& heads, const AttentionCall& call) {
  return heads.unflatten(0, {call.sizes.batch, call.sizes.heads});
}

}  // namespace

void composed_attention(Arguments& a) {
  const AttentionCall call(a.call);
  const AttentionSizes& s = call.sizes;
  at::Tensor probabilities =
      a.saved[0].defined() ? a.saved[0] : at::empty({s.batch * s.heads, s.queries, s.keys}, a.in[0].options());
  {
    at::Tensor scores = at::empty_like(probabilities);
    scores_out(scores, call, a);
    if (s.softcap > 0) multiply_by(scores, s.softcap);
    if (s.biased) by_head(scores, call).add_(a.in[3]);
    if (s.masked()) by_head(scores, call).add_(call.mask(scores.options()));
    at::_softmax_out(probabilities, scores, 2, /*half_to_float=*/false);
  }
  const at::Tensor values = merged(call.repeated(call.of_keys(a.in[2])));
  call.of_queries(a.out[0]).copy_(unmerged(at::bmm(probabilities, values), call));
}

void composed_attention_backward(Arguments& a) {
  const AttentionCall call(a.call);
  const at::Tensor& probabilities = a.saved[0];
  const std::vector<GradientOut>& gradients = a.input_gradients;
  at::Tensor grad = at::empty_like(probabilities);
  {
    const at::Tensor grad_out = merged(call.of_queries(a.output_gradient));
    if (gradients[2].wanted())
      call.take_repeated(gradients[2], unmerged(at::bmm(probabilities.transpose(1, 2), grad_out), call));
    const at::Tensor grad_probabilities =
        at::bmm(grad_out, merged(call.repeated(call.of_keys(a.in[2]))).transpose(1, 2));
    at::_softmax_backward_data_out(grad, grad_probabilities, probabilities, 2, probabilities.scalar_type());
  }
  if (gradients.size() > 3 && gradients[3].wanted()) gradients[3].take(at::sum(by_head(grad, call), 0));
  through_scores(grad, call, a);
  if (gradients[0].wanted()) {
    const at::Tensor of_query = at::bmm(grad, merged(call.repeated(call.of_keys(a.in[1]))));
    gradients[0].viewed([&](const at::Tensor& rows) { return call.of_queries(rows); }).take(unmerged(of_query, call));
  }
  if (!gradients[1].wanted()) return;
  const at::Tensor of_key = at::bmm(merged(call.of_queries(a.in[0])).transpose(1, 2), grad).transpose(1, 2);
  call.take_repeated(gradients[1], unmerged(of_key, call));
}

at::Tensor composed_attention_reference(const ReferenceCall& c) {
  const AttentionCall call(c.call);
  const AttentionSizes& s = call.sizes;
  const auto of_keys = [&](std::size_t input) { return merged(call.repeated(call.of_keys(c.in[input]))); };
  at::Tensor scores = at::bmm(merged(call.of_queries(c.in[0])), of_keys(1).transpose(1, 2)) * call.scale();
  if (s.softcap > 0) scores = at::tanh(scores / s.softcap) * s.softcap;
  scores = by_head(scores, call);
  if (s.biased) scores = scores + c.in[3];
  if (s.masked()) scores = scores + call.mask(scores.options());
  const at::Tensor out = at::bmm(at::softmax(scores.flatten(0, 1), 2), of_keys(2));
  return unmerged(out, call).transpose(1, 2).reshape(c.in[0].sizes());
}

}  // namespace tandem
