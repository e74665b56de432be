#include "analysis/staleness.hpp"

#include <algorithm>

#include "core/transforms/servers/arrivals.hpp"

namespace tandem {

std::optional<Staleness> staleness(const Scenario& scenario, std::int64_t steps) {
  if (staleness_bound(scenario) == 0 || steps == 0) return std::nullopt;
  Arrivals arrivals(arrival_shape(scenario));
  Staleness all;
  all.updates = steps * scenario.workload.devices;
  std::int64_t sum = 0;
  for (std::int64_t update = 0; update < all.updates; ++update) {
    const std::int64_t missed = arrivals.next().staleness;
    sum += missed;
    all.most = std::max(all.most, missed);
  }
  all.mean = static_cast<double>(sum) / static_cast<double>(all.updates);
  return all;
}

}  // namespace tandem
