#include "core/machine/host_memory.hpp"

#include <algorithm>
#include <cstddef>

#include "core/base/check.hpp"

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

MemoryWeight weight_of(const HardwareProfile& profile, std::size_t lane) {
  const auto found = profile.memory_weights.find(static_cast<Engine>(lane));
  return found == profile.memory_weights.end() ? MemoryWeight{} : found->second;
}

}  // namespace

MemoryRates share_host_memory(const HardwareProfile& profile, MemoryRates wanted) {
  share_bus(profile.pcie_bytes_per_s, wanted);
  const double capacity = profile.tiers[static_cast<std::size_t>(Tier::HostPinned)].bytes_per_s;
  MemoryRates claims{}, costs{};  // what a lane's share is in proportion to; what a byte of it costs
  double asked = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const MemoryWeight weight = weight_of(profile, i);
    claims[i] = profile.memory_weights.empty() ? 1 : wanted[i] * weight.weight;
    costs[i] = weight.cost;
    CHECK(wanted[i] >= 0 && claims[i] >= 0 && costs[i] >= 0, i, wanted[i], claims[i], costs[i]);
    asked += costs[i] * wanted[i];
  }
  if (capacity <= 0 || asked <= capacity) return wanted;
  // Fills all lanes at once, by one level; those that have all they want leave the rest to the others.
  MemoryRates got{};
  for (bool more = true; more;) {
    double left = capacity, claimed = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i)
      got[i] == wanted[i] ? left -= costs[i] * got[i] : claimed += costs[i] * claims[i];
    CHECK(claimed >= 0, claimed);
    if (claimed == 0) break;
    more = false;
    for (std::size_t i = 0; i < wanted.size(); ++i)
      if (got[i] < wanted[i] && left / claimed * claims[i] >= wanted[i]) {
        got[i] = wanted[i];
        more = true;
      }
    if (more) continue;
    for (std::size_t i = 0; i < wanted.size(); ++i)
      if (got[i] < wanted[i]) got[i] = left / claimed * claims[i];
  }
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] <= wanted[i], i, got[i], wanted[i]);
  return got;
}

}  // namespace tandem
