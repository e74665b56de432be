#include <ATen/ops/embedding_dense_backward.h>
#include <ATen/ops/index_select.h>

#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

void forward(Arguments& a) { at::index_select_out(a.out[0], a.weights[0], 0, a.in[0].flatten()); }

void backward(Arguments& a) {
  a.weight_gradients[0].take(at::embedding_dense_backward(a.output_gradient, a.in[0].flatten(),
                                                          a.call.shapes.weights[0].shape.rows(), /*padding_idx=*/-1,
                                                          /*scale_grad_by_freq=*/false));
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(embedding, forward, backward)
