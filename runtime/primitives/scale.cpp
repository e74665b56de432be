#include <ATen/TensorOperators.h>
#include <ATen/ops/mul.h>

#include "runtime/primitives/common/number.hpp"
#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

void scaled(at::Tensor out, const at::Tensor& x, const Arguments& a) {
  at::mul_out(out, x, number(a.call.how.number("factor")));
}

void forward(Arguments& a) { scaled(a.out[0], a.in[0], a); }

void backward(Arguments& a) {
  a.input_gradients[0].make([&](const at::Tensor& out) { scaled(out, a.output_gradient, a); });
}

std::vector<at::Tensor> reference(const ReferenceCall& c) { return {c.in[0] * c.call.how.number("factor")}; }

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(scale, forward, backward, reference)
