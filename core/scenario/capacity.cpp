#include "core/scenario/capacity.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "core/scenario/ranks.hpp"

namespace tandem {

std::int64_t tier_memory_bytes(const Scenario& scenario, Tier tier) {
  const auto has = [&](Tier t) { return scenario.machine.tiers[static_cast<std::size_t>(t)].capacity_bytes; };
  // The host is one stretch of memory, of which the first bytes are pinned.
  if (tier == Tier::HostPageable) return 0;
  const std::int64_t capacity = has(tier) + (tier == Tier::HostPinned ? has(Tier::HostPageable) : 0);
  if (tier == Tier::Disk) return std::min(capacity, scenario.limits.disk_bytes.value_or(capacity));
  const std::int64_t limit = tier == Tier::Device       ? scenario.limits.device_bytes
                             : tier == Tier::HostPinned ? scenario.limits.host_bytes
                                                        : 0;
  return limit > 0 ? std::min(capacity, limit) : capacity;
}

std::int64_t tier_capacity_bytes(const Scenario& scenario, Tier tier) {
  const std::int64_t memory = tier_memory_bytes(scenario, tier);
  const std::int64_t sharers = tier == Tier::Device ? 1 : ranks_on_host(scenario);
  const std::int64_t kept = scenario.product.kept_bytes[static_cast<std::size_t>(tier)];
  CHECK(memory >= 0 && kept >= 0 && sharers >= 1, name_of(tier), memory, kept, sharers);
  return kept < memory / sharers ? memory - kept * sharers : 0;
}

std::int64_t pinned_capacity_bytes(const HardwareProfile& machine, std::int64_t ranks_of_host) {
  if (machine.tiers[static_cast<std::size_t>(Tier::HostPageable)].capacity_bytes == 0) return kAllPinned;
  return machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes / ranks_of_host;
}

std::int64_t ranks_on_host(const Scenario& scenario) {
  const std::int64_t ranks = device_count(scenario);
  const std::int64_t most = scenario.machine.devices_per_host;
  return most > 0 ? std::min(ranks, most) : ranks;
}

std::int64_t body_threads(const Scenario& scenario) {
  const std::int64_t machine = scenario.machine.cores > 0 ? scenario.machine.cores : 1;
  return scenario.limits.cores > 0 && scenario.limits.cores < machine ? scenario.limits.cores : machine;
}

}  // namespace tandem
