#include <ATen/ops/embedding.h>
#include <ATen/ops/embedding_dense_backward.h>
#include <ATen/ops/index_select.h>

#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

bool shares(const Arguments& a) { return a.call.weights.empty(); }

void forward(Arguments& a) { at::index_select_out(a.out[0], shares(a) ? a.in[1] : a.weights[0], 0, a.in[0].flatten()); }

void backward(Arguments& a) {
  const GradientOut& table = shares(a) ? a.input_gradients[1] : a.weight_gradients[0];
  table.take(at::embedding_dense_backward(a.output_gradient, a.in[0].flatten(), a.call.how.integer("rows"),
                                          /*padding_idx=*/-1, /*scale_grad_by_freq=*/false));
}

std::vector<at::Tensor> reference(const ReferenceCall& c) {
  return {at::embedding(c.weights.empty() ? c.in[1] : c.weights[0], c.in[0].flatten())};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(embedding, forward, backward, reference)
