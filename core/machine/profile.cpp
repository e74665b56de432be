#include "core/machine/profile.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "core/base/check.hpp"

namespace tandem {

double Curve::at(double x_value) const {
  CHECK(x.size() == y.size(), x.size(), y.size());
  if (x.empty()) return 1;
  // Also for NaN, which compares false: the first point rather than an index out of range.
  if (!(x_value > x.front())) return y.front();
  if (x_value >= x.back()) return y.back();
  const auto above = static_cast<std::size_t>(std::upper_bound(x.begin(), x.end(), x_value) - x.begin());
  CHECK(x[above - 1] > 0 && x[above] > x[above - 1], "points of a curve ascend", x[above - 1], x[above]);
  const double share = std::log(x_value / x[above - 1]) / std::log(x[above] / x[above - 1]);
  return y[above - 1] + share * (y[above] - y[above - 1]);
}

}  // namespace tandem
