#include "calibration/slow_down_model.hpp"

#include "calibration/fit_profile.hpp"
#include "core/machine/lane_slow_down.hpp"

namespace tandem {
namespace {

std::size_t index(Engine lane) { return static_cast<std::size_t>(lane); }

// What each gets; weights that undo what lanes want make equal parts.
MemoryRates shared(HardwareProfile profile, const MemoryRates& wanted) {
  if (profile.memory_weights.empty())
    for (std::size_t lane = 0; lane < wanted.size(); ++lane)
      if (wanted[lane] > 0) profile.memory_weights[static_cast<Engine>(lane)] = 1 / wanted[lane];
  return share_host_memory(profile, wanted);
}

}  // namespace

MemoryRates host_memory_rates(const std::vector<OpTime>& ops, const HardwareProfile& profile) {
  MemoryRates alone{};
  alone[index(Engine::CpuOptimizer)] = cpu_optimizer_bytes_per_s(ops);
  alone[index(Engine::H2D)] = profile.h2d.bytes_per_s;
  alone[index(Engine::D2H)] = profile.d2h.bytes_per_s;
  return alone;
}

double modelled_slow_down(const SlowDown& s, const std::vector<OpTime>& ops, const HardwareProfile& profile) {
  const MemoryRates alone = host_memory_rates(ops, profile);
  std::vector<Engine> lanes = s.others;
  lanes.push_back(s.lane);
  std::uint16_t busy = 0;
  for (const Engine lane : lanes) busy = static_cast<std::uint16_t>(busy | engine_bit(lane));
  MemoryRates wanted{};
  for (const Engine lane : lanes) wanted[index(lane)] = alone[index(lane)] / lane_slow_down(profile, lane, busy);
  const double by_memory =
      wanted[index(s.lane)] > 0 ? wanted[index(s.lane)] / shared(profile, wanted)[index(s.lane)] : 1;
  return by_memory * lane_slow_down(profile, s.lane, busy);
}

}  // namespace tandem
