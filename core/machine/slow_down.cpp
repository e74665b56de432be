#include "core/machine/slow_down.hpp"

#include "core/machine/lane_slow_down.hpp"

namespace tandem {

MemoryRates memory_rates_alone(const HardwareProfile& profile, double cpu_optimizer_bytes_per_s) {
  MemoryRates alone{};
  alone[static_cast<std::size_t>(Engine::CpuOptimizer)] = cpu_optimizer_bytes_per_s;
  alone[static_cast<std::size_t>(Engine::H2D)] = profile.h2d.bytes_per_s;
  alone[static_cast<std::size_t>(Engine::D2H)] = profile.d2h.bytes_per_s;
  return alone;
}

double slow_down(const HardwareProfile& profile, const MemoryRates& alone, Engine lane, std::uint16_t busy) {
  const auto at = static_cast<std::size_t>(lane);
  MemoryRates wanted{};
  for (std::size_t other = 0; other < wanted.size(); ++other)
    if (const auto engine = static_cast<Engine>(other); busy & engine_bit(engine))
      wanted[other] = alone[other] / lane_slow_down(profile, engine, busy);
  const double by_memory = wanted[at] > 0 ? wanted[at] / share_host_memory(profile, wanted)[at] : 1;
  return by_memory * lane_slow_down(profile, lane, busy);
}

}  // namespace tandem
