#include "core/transforms/generation/ddim.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/check.hpp"

namespace tandem {
namespace {

constexpr double kFirstVariance = 0.00085, kLastVariance = 0.012;
constexpr std::int64_t kOffset = 1;

// The share of an image in what there is after all noise up to a time: the product of 1 - beta.
double signal_at(std::int64_t time) {
  const double first = std::sqrt(kFirstVariance), last = std::sqrt(kLastVariance);
  double product = 1;
  for (std::int64_t t = 0; t <= time; ++t) {
    const double root = first + (last - first) * static_cast<double>(t) / static_cast<double>(kNoiseTimes - 1);
    product *= 1 - root * root;
  }
  return product;
}

}  // namespace

DdimStep ddim_step(std::int64_t steps, std::int64_t index) {
  CHECK(steps > 0 && steps < kNoiseTimes && index >= 0 && index < steps, steps, index);
  const std::int64_t apart = kNoiseTimes / steps, time = (steps - 1 - index) * apart + kOffset;
  CHECK(time < kNoiseTimes, time, steps);
  // Behind the last step there is still the noise of the first time.
  const double now = signal_at(time), next = signal_at(std::max<std::int64_t>(time - apart, 0));
  const double kept = std::sqrt(next / now);
  return {time, kept, std::sqrt(1 - next) - kept * std::sqrt(1 - now)};
}

}  // namespace tandem
