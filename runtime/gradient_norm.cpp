#include "runtime/gradient_norm.hpp"

#include <algorithm>
#include <cmath>

#include "core/workloads/common/sums.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kLanes = 8;

double block_sum(const float* gradient, std::int64_t elements) {
  double lanes[kLanes] = {};
  const std::int64_t whole = elements / kLanes * kLanes;
  for (std::int64_t i = 0; i < whole; i += kLanes)
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const double x = gradient[i + lane];
      lanes[lane] += x * x;
    }
  for (std::int64_t i = whole; i < elements; ++i) {
    const double x = gradient[i];
    lanes[i - whole] += x * x;
  }
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

}  // namespace

double sum_of_squares(const float* gradient, std::int64_t elements) {
  double sum = 0;
  for (std::int64_t first = 0; first < elements; first += kNormBlock)
    sum += block_sum(gradient + first, std::min(kNormBlock, elements - first));
  return sum;
}

double clip_coefficient(double sum_of_squares, double clip_norm) {
  constexpr double kEpsilon = 1e-6;  // torch.nn.utils.clip_grad_norm_
  return std::min(1.0, clip_norm / (std::sqrt(sum_of_squares) + kEpsilon));
}

}  // namespace tandem
