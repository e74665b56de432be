#include <ATen/ops/arange.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sin.h>

#include <cmath>

#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

void forward(Arguments& a) {
  const Attributes& how = a.call.how;
  const std::int64_t half = how.integer("dim") / 2;
  const double fall = -std::log(how.number("period")) / static_cast<double>(half - how.integer("shift", 0));
  const auto fp32 = a.in[0].options().dtype(at::kFloat);
  const at::Tensor frequencies = at::arange(half, fp32).mul_(fall).exp_();
  const at::Tensor angles = at::mul(a.in[0].to(at::kFloat).unsqueeze(1), frequencies);
  a.out[0].narrow(1, 0, half).copy_(at::sin(angles));
  a.out[0].narrow(1, half, half).copy_(at::cos(angles));
}

void backward(Arguments&) {}  // of numbers that are no weights

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(sinusoids, forward, backward)
