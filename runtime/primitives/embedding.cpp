#include <ATen/ops/embedding.h>
#include <ATen/ops/embedding_dense_backward.h>
#include <ATen/ops/index_select.h>

#include "runtime/primitives/common/own_rows.hpp"
#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

bool shares(const Arguments& a) { return a.call.weights.empty(); }

void forward(Arguments& a) {
  const at::Tensor& table = shares(a) ? a.in[1] : a.weights[0];
  if (!is_divided(a.call)) return void(at::index_select_out(a.out[0], table, 0, a.in[0].flatten()));
  const OwnRows rows(a.call, a.in[0], table.size(0));
  at::index_select_out(a.out[0], table, 0, rows.places);
  a.out[0].masked_fill_(rows.elsewhere.unsqueeze(1), 0);
}

void backward(Arguments& a) {
  constexpr std::int64_t kNoRow = -1;
  const std::int64_t rows = a.call.how.integer("rows");
  const GradientOut& table = shares(a) ? a.input_gradients[1] : a.weight_gradients[0];
  const auto give = [&](const at::Tensor& places) {
    table.take(at::embedding_dense_backward(a.output_gradient, places, rows, /*padding_idx=*/kNoRow,
                                            /*scale_grad_by_freq=*/false));
  };
  if (!is_divided(a.call)) return give(a.in[0].flatten());
  OwnRows own(a.call, a.in[0], rows);
  give(own.places.masked_fill_(own.elsewhere, kNoRow));
}

std::vector<at::Tensor> reference(const ReferenceCall& c) {
  const at::Tensor& table = c.weights.empty() ? c.in[1] : c.weights[0];
  if (!is_divided(c.call)) return {at::embedding(table, c.in[0].flatten())};
  const OwnRows rows(c.call, c.in[0], table.size(0));
  return {at::embedding(table, rows.places).masked_fill(rows.elsewhere.unsqueeze(1), 0)};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(embedding, forward, backward, reference)
