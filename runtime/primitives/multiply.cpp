#include <ATen/TensorOperators.h>
#include <ATen/ops/mul.h>

#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

void forward(Arguments& a) { at::mul_out(a.out[0], a.in[0], a.in[1]); }

void backward(Arguments& a) {
  for (std::size_t i = 0; i < 2; ++i)
    if (a.input_gradients[i].wanted())
      a.input_gradients[i].make([&](at::Tensor out) { at::mul_out(out, a.output_gradient, a.in[1 - i]); });
}

std::vector<at::Tensor> reference(const ReferenceCall& c) { return {c.in[0] * c.in[1]}; }

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(multiply, forward, backward, reference)
