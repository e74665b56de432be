#include <ATen/TensorOperators.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/sum.h>

#include "runtime/primitives/common/expert_places.hpp"
#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

// How many neighbours each target has, at least 1, in the values' precision: [targets, 1].
at::Tensor counts(const at::Tensor& neighbours, at::ScalarType type) {
  return neighbours.ge(0).sum(1, /*keepdim=*/true).clamp_min_(1).to(type);
}

void forward(Arguments& a) {
  at::sum_out(a.out[0], rows_of_choices(a.in[0], a.in[1]), 1);
  a.out[0].div_(counts(a.in[1], a.out[0].scalar_type()));
}

void backward(Arguments& a) {
  const at::Tensor& neighbours = a.in[1];
  const at::Tensor mean = a.output_gradient.div(counts(neighbours, a.output_gradient.scalar_type()));
  const at::Tensor rows = mean.unsqueeze(1).expand({neighbours.size(0), neighbours.size(1), mean.size(1)}).contiguous();
  rows.masked_fill_(neighbours.lt(0).unsqueeze(2), 0);
  a.input_gradients[0].make([&](const at::Tensor& out) {
    out.zero_();
    out.index_add_(0, neighbours.view(-1).clamp_min(0), rows.view({-1, mean.size(1)}));
  });
}

std::vector<at::Tensor> reference(const ReferenceCall& c) {
  return {rows_of_choices(c.in[0], c.in[1]).sum(1) / counts(c.in[1], c.in[0].scalar_type())};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(aggregate, forward, backward, reference)
