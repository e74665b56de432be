// Gradients of experts that ranks divide: core/transforms/common/gradient_sum.cpp has the operands.
#include "runtime/bodies/common/operands.hpp"
#include "runtime/body_table.hpp"

namespace tandem {
namespace {

std::int64_t divide_gradient(BodyCall& call) {
  Operands operands(call);
  operands.write({operands.size(0)}).div_(operands.size(1));  // the read's place
  return 0;
}

constexpr BodyEntry kBodies[] = {{"divide_gradient", divide_gradient, kRepeatable}};

}  // namespace

std::span<const BodyEntry> experts_bodies() { return kBodies; }

}  // namespace tandem
