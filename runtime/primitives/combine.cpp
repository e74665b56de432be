#include <ATen/TensorOperators.h>
#include <ATen/ops/floor_divide.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/sum.h>

#include "runtime/primitives/common/expert_places.hpp"
#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

void forward(Arguments& a) {
  const at::Tensor rows = rows_of_choices(a.in[0], a.in[1]);
  at::sum_out(a.out[0], rows.mul_(a.in[2].unsqueeze(2)), 1);
}

void backward(Arguments& a) {
  const at::Tensor &grad = a.output_gradient, &places = a.in[1];
  if (a.input_gradients[0].wanted())
    a.input_gradients[0].make([&](at::Tensor out) {
      const SlotTable table(places, out.size(0));
      at::index_select_out(out, grad, 0, at::floor_divide(table.choice, places.size(1)));
      out.mul_(at::index_select(a.in[2].view(-1), 0, table.choice).unsqueeze(1)).masked_fill_(table.empty, 0);
      out.add_(0);  // autograd adds to zeros: there is no -0
    });
  if (a.input_gradients[2].wanted())
    a.input_gradients[2].make([&](const at::Tensor& out) {
      const at::Tensor rows = rows_of_choices(a.in[0], places);
      at::Tensor to = out.unsqueeze(2);
      at::sum_out(to, rows.mul_(grad.unsqueeze(1)), 2, /*keepdim=*/true);
    });
}

std::vector<at::Tensor> reference(const ReferenceCall& c) {
  return {(rows_of_choices(c.in[0], c.in[1]) * c.in[2].unsqueeze(2)).sum(1)};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(combine, forward, backward, reference)
