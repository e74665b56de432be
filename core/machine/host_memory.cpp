#include "core/machine/host_memory.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace tandem {
namespace {

double& of(MemoryRates& rates, Engine lane) { return rates[static_cast<std::size_t>(lane)]; }

void share_bus(double bytes_per_s, MemoryRates& rates) {
  double &up = of(rates, Engine::H2D), &down = of(rates, Engine::D2H);
  const double over = bytes_per_s > 0 ? (up + down) / bytes_per_s : 0;
  if (over <= 1) return;
  up /= over;
  down /= over;
}

// What a lane's share of the memory is in proportion to.
double claim(const HardwareProfile& profile, std::size_t lane, double wanted) {
  if (profile.memory_weights.empty()) return 1;
  const auto found = profile.memory_weights.find(static_cast<Engine>(lane));
  return found == profile.memory_weights.end() ? wanted : wanted * found->second;
}

}  // namespace

MemoryRates share_host_memory(const HardwareProfile& profile, MemoryRates wanted) {
  share_bus(profile.pcie_bytes_per_s, wanted);
  const double capacity = profile.tiers[static_cast<std::size_t>(Tier::HostPinned)].bytes_per_s;
  if (capacity <= 0 || std::accumulate(wanted.begin(), wanted.end(), 0.0) <= capacity) return wanted;
  // Fills all lanes at once, by one level; those that have all they want leave the rest to the others.
  MemoryRates got{};
  for (bool more = true; more;) {
    double left = capacity, claims = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i)
      got[i] == wanted[i] ? left -= got[i] : claims += claim(profile, i, wanted[i]);
    if (claims == 0) break;
    more = false;
    for (std::size_t i = 0; i < wanted.size(); ++i)
      if (got[i] < wanted[i] && left / claims * claim(profile, i, wanted[i]) >= wanted[i]) {
        got[i] = wanted[i];
        more = true;
      }
    if (more) continue;
    for (std::size_t i = 0; i < wanted.size(); ++i)
      if (got[i] < wanted[i]) got[i] = left / claims * claim(profile, i, wanted[i]);
  }
  return got;
}

}  // namespace tandem
