#include "analysis/holder.hpp"

#include <algorithm>
#include <numeric>

namespace tandem {

Holder holder(double compute_s, const std::map<std::string, double>& exposed_s) {
  constexpr double kHalf = 0.5;
  const double step_s = std::accumulate(exposed_s.begin(), exposed_s.end(), compute_s,
                                        [](double sum, const auto& wait) { return sum + wait.second; });
  if (step_s <= 0) return {"compute", 0};
  const auto longest = std::max_element(exposed_s.begin(), exposed_s.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
  if (longest == exposed_s.end() || compute_s >= kHalf * step_s) return {"compute", compute_s / step_s};
  return {longest->first, longest->second / step_s};
}

}  // namespace tandem
