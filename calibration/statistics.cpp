#include "calibration/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "calibration/text.hpp"
#include "core/base/check.hpp"

namespace tandem {
namespace {

// A sample at the beginning that takes this much longer than the later half's median is warm-up: page faults, cold
// caches, a library that sets itself up.
constexpr double kWarmUpFactor = 1.25;
// Of the samples, at most this share may be taken for warm-up.
constexpr double kMostWarmUp = 0.5;
// Outliers are further from the median than this many median absolute deviations...
constexpr double kOutlierDeviations = 6;
// ... and than this share of it, which is the noise of a good timer.
constexpr double kLeastDeviation = 0.02;

std::size_t warm_up_length(const std::vector<double>& samples) {
  const auto half = static_cast<std::ptrdiff_t>(samples.size() / 2);
  const double settled = quantile({samples.begin() + half, samples.end()}, 0.5);
  const auto most = static_cast<std::size_t>(kMostWarmUp * static_cast<double>(samples.size()));
  std::size_t length = 0;
  while (length < most && samples[length] > kWarmUpFactor * settled) ++length;
  return length;
}

}  // namespace

double quantile(std::vector<double> samples, double share) {
  CHECK(!samples.empty() && share >= 0 && share <= 1, samples.size(), share);
  std::sort(samples.begin(), samples.end());
  const double at = share * static_cast<double>(samples.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, samples.size() - 1);
  return samples[below] + (at - static_cast<double>(below)) * (samples[above] - samples[below]);
}

Summary summarize(const std::vector<double>& samples) {
  CHECK(!samples.empty());
  Summary summary;
  summary.warm_up = static_cast<int>(warm_up_length(samples));
  const std::vector<double> warm(samples.begin() + summary.warm_up, samples.end());
  summary.count = static_cast<int>(warm.size());
  summary.median = quantile(warm, 0.5);
  summary.low = quantile(warm, 0.1);
  summary.high = quantile(warm, 0.9);
  std::vector<double> deviations;
  for (const double sample : warm) deviations.push_back(std::abs(sample - summary.median));
  const double limit = std::max(kOutlierDeviations * quantile(deviations, 0.5), kLeastDeviation * summary.median);
  summary.outliers =
      static_cast<int>(std::count_if(deviations.begin(), deviations.end(), [&](double d) { return d > limit; }));
  return summary;
}

std::string describe(const Summary& s, double unit) {
  return printed("%.4g (%.4g to %.4g, %d samples, %d outlier%s)", s.median / unit, s.low / unit, s.high / unit, s.count,
                 s.outliers, s.outliers == 1 ? "" : "s");
}

}  // namespace tandem
