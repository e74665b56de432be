#include <ATen/ops/empty_like.h>
#include <ATen/ops/mul.h>

#include "runtime/primitives/common/random_factors.hpp"

namespace tandem {
namespace {

using at::Tensor;

// out = x factors. They may lie in one place.
void drop(Tensor out, const Tensor& x, const Arguments& a) {
  const Tensor factors = at::empty_like(x);
  fill_random_factors(factors, stream_key(a.random, a.call.how.integer("stream")), a.call.how.number("rate"));
  at::mul_out(out, x, factors);
}

void forward(Arguments& a) {
  if (a.random.draws && a.call.how.number("rate") > 0)
    drop(a.out[0], a.in[0], a);
  else if (a.out[0].data_ptr() != a.in[0].data_ptr())
    a.out[0].copy_(a.in[0]);
}

void backward(Arguments& a) {
  a.input_gradients[0].make([&](const Tensor& out) { drop(out, a.output_gradient, a); });
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(dropout, forward, backward)
