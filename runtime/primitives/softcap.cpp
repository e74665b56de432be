#include <ATen/TensorOperators.h>
#include <ATen/ops/div.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tanh_backward.h>

#include "runtime/primitives/common/number.hpp"
#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

using at::Tensor;

void forward(Arguments& a) {
  const double cap = a.call.how.number("cap");
  Tensor out = a.out[0];
  at::div_out(out, a.in[0], number(cap));
  out.tanh_();
  multiply_by(out, cap);
}

void backward(Arguments& a) {
  const double cap = a.call.how.number("cap");
  a.input_gradients[0].make([&](Tensor out) {
    const Tensor tangent = at::div(a.in[0], cap).tanh_();
    at::mul_out(out, a.output_gradient, number(cap));
    at::tanh_backward_out(out, out, tangent);
    out.div_(cap);
  });
}

std::vector<Tensor> reference(const ReferenceCall& c) {
  const double cap = c.call.how.number("cap");
  return {at::tanh(c.in[0] / cap) * cap};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(softcap, forward, backward, reference)
