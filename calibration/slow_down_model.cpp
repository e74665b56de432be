#include "calibration/slow_down_model.hpp"

#include "calibration/fit_profile.hpp"
#include "core/machine/slow_down.hpp"

namespace tandem {

MemoryRates host_memory_rates(const std::vector<OpTime>& ops, const HardwareProfile& profile) {
  return memory_rates_alone(profile, cpu_optimizer_bytes_per_s(ops));
}

double modelled_slow_down(const SlowDown& s, const std::vector<OpTime>& ops, const HardwareProfile& profile) {
  const MemoryRates alone = host_memory_rates(ops, profile);
  std::uint16_t busy = engine_bit(s.lane);
  for (const Engine lane : s.others) busy = static_cast<std::uint16_t>(busy | engine_bit(lane));
  return slow_downs(profile, alone, busy)[static_cast<std::size_t>(s.lane)];
}

}  // namespace tandem
