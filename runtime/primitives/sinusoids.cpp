#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sin.h>

#include <cmath>

#include "runtime/primitives/common/primitive_body.hpp"
#include "runtime/torch_types.hpp"

namespace tandem {
namespace {

// Of each number with each frequency, in fp32.
at::Tensor angles_of(const Attributes& how, const at::Tensor& numbers) {
  const std::int64_t half = how.integer("dim") / 2;
  const double fall = -std::log(how.number("period")) / static_cast<double>(half - how.integer("shift", 0));
  const auto fp32 = numbers.options().dtype(at::kFloat);
  const at::Tensor frequencies = at::arange(half, fp32).mul_(fall).exp_();
  at::Tensor counted = numbers.to(at::kFloat);
  if (const std::int64_t first = how.integer("first", 0); first != 0) counted.add_(first);
  return at::mul(counted.unsqueeze(1), frequencies);
}

void forward(Arguments& a) {
  const std::int64_t half = a.call.how.integer("dim") / 2;
  const at::Tensor angles = angles_of(a.call.how, a.in[0]);
  a.out[0].narrow(1, 0, half).copy_(at::sin(angles));
  a.out[0].narrow(1, half, half).copy_(at::cos(angles));
}

void backward(Arguments&) {}  // of numbers that are no weights

std::vector<at::Tensor> reference(const ReferenceCall& c) {
  const at::Tensor angles = angles_of(c.call.how, c.in[0]);
  return {at::cat({at::sin(angles), at::cos(angles)}, 1).to(torch_type(c.call.shapes.out[0].type))};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(sinusoids, forward, backward, reference)
