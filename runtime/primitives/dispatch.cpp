#include <ATen/ops/floor_divide.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>

#include "runtime/primitives/common/expert_places.hpp"
#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

void forward(Arguments& a) {
  const SlotTable table(a.in[1], a.out[0].size(0));
  at::index_select_out(a.out[0], a.in[0], 0, at::floor_divide(table.choice, a.in[1].size(1)));
  a.out[0].masked_fill_(table.empty, 0);
}

void backward(Arguments& a) {
  a.input_gradients[0].make([&](at::Tensor out) { at::sum_out(out, rows_of_choices(a.output_gradient, a.in[1]), 1); });
}

// A row behind the last slot is for who has no place.
std::vector<at::Tensor> reference(const ReferenceCall& c) {
  const at::Tensor &x = c.in[0], &places = c.in[1];
  const std::int64_t slots = c.call.shapes.out[0].rows(), hidden = x.size(1);
  const at::Tensor rows = x.unsqueeze(1).expand({x.size(0), places.size(1), hidden}).reshape({-1, hidden});
  const at::Tensor to = places.view(-1).masked_fill(places.view(-1).lt(0), slots);
  return {at::zeros({slots + 1, hidden}, x.options()).index_copy(0, to, rows).narrow(0, 0, slots)};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(dispatch, forward, backward, reference)
