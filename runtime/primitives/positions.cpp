#include <ATen/TensorOperators.h>
#include <ATen/ops/add.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/sum.h>

#include "runtime/primitives/common/own_places.hpp"
#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

// [batch, sequence, columns]
at::Tensor sequences(const Call& call, const at::Tensor& rows) {
  return rows.view({-1, call.how.integer("sequence"), rows.size(1)});
}

// The rows that the sequence, or this rank's part of it, has.
at::Tensor rows_of(const Call& call, const at::Tensor& table) {
  const OwnPlaces own(call);
  return table.slice(0, call.how.integer("first", 0) + own.first, call.how.integer("first", 0) + own.end(), own.step);
}

// Of each sequence, which begins by so many places less: [batch, sequence, columns].
at::Tensor rows_of_each(const Call& call, const at::Tensor& table, const at::Tensor& padding) {
  const std::int64_t first = call.how.integer("first", 0), sequence = call.how.integer("sequence");
  const at::Tensor places = at::arange(first, first + sequence, padding.options()).sub(padding.unsqueeze(1)).clamp_(0);
  return table.index_select(0, places.view({-1})).view({padding.size(0), sequence, table.size(1)});
}

at::Tensor rows_added(const Call& call, const std::vector<at::Tensor>& in, const at::Tensor& table) {
  return in.size() > 1 ? rows_of_each(call, table, in[1]) : rows_of(call, table);
}

void forward(Arguments& a) {
  at::Tensor out = sequences(a.call, a.out[0]);
  const at::Tensor rows = rows_added(a.call, a.in, a.weights[0]);
  if (a.out[0].data_ptr() == a.in[0].data_ptr())
    out.add_(rows);
  else
    at::add_out(out, sequences(a.call, a.in[0]), rows);
}

void backward(Arguments& a) {
  for (const GradientOut& gradient : a.input_gradients)
    if (gradient.wanted()) gradient.take(a.output_gradient);
  if (a.wanted.weights == 0) return;
  const at::Tensor grad = sequences(a.call, a.output_gradient);
  a.weight_gradients[0].make([&](const at::Tensor& out) {
    at::Tensor rows = rows_of(a.call, out);
    if (out.size(0) > rows.size(0)) out.zero_();
    at::sum_out(rows, grad, 0);
  });
}

std::vector<at::Tensor> reference(const ReferenceCall& c) {
  return {(sequences(c.call, c.in[0]) + rows_added(c.call, c.in, c.weights[0])).flatten(0, 1)};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(positions, forward, backward, reference)
