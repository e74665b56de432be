// Measured rates to an efficiency curve. Must not know what the rates are of.
#pragma once

#include <utility>
#include <vector>

#include "core/machine/profile.hpp"

namespace tandem {

// Times below this multiple of an overhead say more about the overhead than about a rate.
inline constexpr double kOverheadShare = 3;

// Points (size, rate) to a curve of rate / full_rate. Points of nearly the same size are joined by their median, so
// that the curve has few of them. CHECKs that there is a point.
Curve efficiency_curve(std::vector<std::pair<double, double>> points, double full_rate);

}  // namespace tandem
