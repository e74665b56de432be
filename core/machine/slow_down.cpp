#include "core/machine/slow_down.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "core/machine/lane_slow_down.hpp"

namespace tandem {

MemoryRates memory_rates_alone(const HardwareProfile& profile, double cpu_optimizer_bytes_per_s) {
  MemoryRates alone{};
  alone[static_cast<std::size_t>(Engine::CpuOptimizer)] = cpu_optimizer_bytes_per_s;
  alone[static_cast<std::size_t>(Engine::H2D)] = profile.h2d.bytes_per_s;
  alone[static_cast<std::size_t>(Engine::D2H)] = profile.d2h.bytes_per_s;
  return alone;
}

std::array<double, kEngineCount> slow_downs(const HardwareProfile& profile, const MemoryRates& alone,
                                            std::uint16_t busy) {
  std::array<double, kEngineCount> factors;
  factors.fill(1);
  MemoryRates wanted{};
  for (std::size_t lane = 0; lane < factors.size(); ++lane) {
    const auto engine = static_cast<Engine>(lane);
    if (!(busy & engine_bit(engine))) continue;
    factors[lane] = lane_slow_down(profile, engine, busy);
    CHECK(factors[lane] > 0 && alone[lane] >= 0, name_of(engine), factors[lane], alone[lane]);
    wanted[lane] = alone[lane] / factors[lane];
  }
  const MemoryRates got = share_host_memory(profile, wanted);
  for (std::size_t lane = 0; lane < factors.size(); ++lane)
    if (got[lane] > 0) factors[lane] *= wanted[lane] / got[lane];
  for (const double factor : factors) CHECK(factor > 0, factor, busy);
  return factors;
}

double later_starts(const HardwareProfile& profile, const std::array<double, kEngineCount>& factors, std::uint16_t busy,
                    bool recorded) {
  double share = 0;
  for (const auto& [lane, slow] : profile.launches_beside)
    if (busy & engine_bit(lane))
      share += (recorded ? slow.repeated_starts : slow.starts) * factors[static_cast<std::size_t>(lane)];
  return share;
}

double slower_launch(const HardwareProfile& profile, std::uint16_t busy) {
  double factor = 1;
  for (const auto& [lane, slow] : profile.launches_beside)
    if (busy & engine_bit(lane)) factor += slow.launch - 1;
  return std::max(factor, 0.0);
}

}  // namespace tandem
