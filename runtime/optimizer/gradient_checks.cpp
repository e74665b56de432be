#include "runtime/optimizer/gradient_checks.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "core/base/check.hpp"
#include "core/formats/sums.hpp"
#include "runtime/optimizer/kernels.hpp"

namespace tandem {

GradientCheck check_gradient(const void* gradient, DType type, std::int64_t elements) {
  return check_gradient(gradient, type, elements, best_isa());
}

GradientCheck check_gradient(const void* gradient, DType type, std::int64_t elements, Isa isa) {
  CHECK(type == DType::F32 || type == DType::BF16 || type == DType::F16, name_of(type));
  const Kernels& kernels = kernels_of(isa);
  const auto* bytes = static_cast<const std::byte*>(gradient);
  double sum = 0;
  for (std::int64_t first = 0; first < elements; first += kNormBlock)
    sum += kernels.square_sum(bytes + first * size_of(type), type, std::min(kNormBlock, elements - first));
  // Squares of finite floats are below 2^256 and cannot cancel, so that only an infinity or a NaN spoils their sum.
  return {sum, std::isfinite(sum)};
}

double sum_of_squares(const float* gradient, std::int64_t elements) {
  return check_gradient(gradient, DType::F32, elements).sum_of_squares;
}

}  // namespace tandem
