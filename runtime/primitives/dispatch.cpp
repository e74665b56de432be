#include <ATen/ops/floor_divide.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/sum.h>

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

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(dispatch, forward, backward)
