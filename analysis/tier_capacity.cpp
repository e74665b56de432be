#include "analysis/tier_capacity.hpp"

#include "core/scenario/capacity.hpp"

namespace tandem {

std::int64_t capacity_of_peak(const Scenario& scenario, const std::string& key) {
  if (key.starts_with("device")) return tier_memory_bytes(scenario, Tier::Device);
  if (key == "disk") return tier_memory_bytes(scenario, Tier::Disk);
  const std::int64_t pinned = tier_memory_bytes(scenario, Tier::HostPinned);
  return key == "host" ? pinned + tier_memory_bytes(scenario, Tier::HostPageable) : pinned;
}

}  // namespace tandem
