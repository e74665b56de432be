#include "core/machine/profile.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace tandem {

double Curve::at(double x_value) const {
  if (x.empty()) return 1;
  // Also for NaN, which compares false: the first point rather than an index out of range.
  if (!(x_value > x.front())) return y.front();
  if (x_value >= x.back()) return y.back();
  const auto above = static_cast<std::size_t>(std::upper_bound(x.begin(), x.end(), x_value) - x.begin());
  const double share = std::log(x_value / x[above - 1]) / std::log(x[above] / x[above - 1]);
  return y[above - 1] + share * (y[above] - y[above - 1]);
}

}  // namespace tandem
