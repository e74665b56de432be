#include "runtime/bodies/common/masters.hpp"

namespace tandem {

using at::Tensor;

Tensor masters_of(const Tensor& parameter, const Tensor& low) {
  if (parameter.scalar_type() == at::kFloat) return parameter;
  if (!low.defined()) return parameter.to(at::kFloat);
  return parameter.view(at::kShort).to(at::kInt).bitwise_left_shift_(16).add_(low).view(at::kFloat);
}

void round_masters(const Tensor& masters, const Tensor& parameter, const Tensor& low) {
  if (parameter.scalar_type() == at::kFloat) return;
  if (parameter.scalar_type() == at::kHalf) {
    parameter.copy_(masters);
    return;
  }
  const Tensor bits = masters.view(at::kInt), upper = bits.add(1 << 15).bitwise_right_shift_(16);
  parameter.view(at::kShort).copy_(upper);
  if (low.defined()) low.copy_(bits.sub_(upper.bitwise_left_shift_(16)));
}

}  // namespace tandem
