#include <ATen/TensorOperators.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mul.h>

#include "runtime/primitives/common/random_factors.hpp"

namespace tandem {
namespace {

using at::Tensor;

bool draws(const Call& call, const RandomKey& random) { return random.draws && call.how.number("rate") > 0; }

Tensor factors_like(const Tensor& x, const Call& call, const RandomKey& random) {
  Tensor factors = at::empty_like(x);
  fill_random_factors(factors, stream_key(random, call.how.integer("stream")), call.how.number("rate"));
  return factors;
}

// out = x factors. They may lie in one place.
void drop(Tensor out, const Tensor& x, const Arguments& a) { at::mul_out(out, x, factors_like(x, a.call, a.random)); }

void forward(Arguments& a) {
  if (draws(a.call, a.random))
    drop(a.out[0], a.in[0], a);
  else if (a.out[0].data_ptr() != a.in[0].data_ptr())
    a.out[0].copy_(a.in[0]);
}

void backward(Arguments& a) {
  a.input_gradients[0].make([&](const Tensor& out) { drop(out, a.output_gradient, a); });
}

std::vector<Tensor> reference(const ReferenceCall& c) {
  const Tensor& x = c.in[0];
  return {draws(c.call, c.random) ? x * factors_like(x, c.call, c.random) : x};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(dropout, forward, backward, reference)
