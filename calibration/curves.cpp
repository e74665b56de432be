#include "calibration/curves.hpp"

#include <algorithm>
#include <cmath>

#include "calibration/statistics.hpp"
#include "core/base/check.hpp"

namespace tandem {
namespace {

// Sizes within this factor of a group's first are one point of the curve.
constexpr double kSameSize = 1.6;
// The schema's bounds on an efficiency.
constexpr double kLeastEfficiency = 1e-4, kMostEfficiency = 20;

}  // namespace

Curve efficiency_curve(std::vector<std::pair<double, double>> points, double full_rate) {
  CHECK(!points.empty() && full_rate > 0, points.size(), full_rate);
  std::sort(points.begin(), points.end());
  Curve curve;
  for (std::size_t i = 0; i < points.size();) {
    const double first = points[i].first;
    double log_size = 0;
    std::vector<double> rates;
    for (; i < points.size() && points[i].first <= first * kSameSize; ++i) {
      log_size += std::log(points[i].first);
      rates.push_back(points[i].second);
    }
    curve.x.push_back(std::round(std::exp(log_size / static_cast<double>(rates.size()))));
    curve.y.push_back(std::clamp(quantile(rates, 0.5) / full_rate, kLeastEfficiency, kMostEfficiency));
  }
  return curve;
}

}  // namespace tandem
