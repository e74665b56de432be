#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "calibration/fit_profile.hpp"
#include "core/scheduler/check.hpp"

namespace tandem {
namespace {

// A pair's loss below this is noise.
constexpr double kLeastInterference = 1.01;

// What each lane asks of the host's memory when it runs alone, in bytes/s.
using Demands = std::map<Engine, double>;

double of(const Demands& demands, Engine lane) {
  const auto found = demands.find(lane);
  return found == demands.end() ? 0 : found->second;
}

// What the lanes of one group moved together, of groups in which all lanes use the host's memory.
std::map<std::set<Engine>, double> moved_together(const std::vector<SlowDown>& slow_downs, const Demands& demands) {
  std::map<std::set<Engine>, double> moved;
  for (const SlowDown& s : slow_downs) {
    std::set<Engine> group(s.others.begin(), s.others.end());
    group.insert(s.lane);
    if (std::all_of(group.begin(), group.end(), [&](Engine lane) { return of(demands, lane) > 0; }))
      moved[group] += of(demands, s.lane) / machine_factor(s);
  }
  return moved;
}

bool is_copy(Engine lane) { return lane == Engine::H2D || lane == Engine::D2H; }

// How much longer a pair takes because it shares bandwidths equally in proportion to what each lane asks.
double by_sharing(Engine a, Engine b, const Demands& demands, const HardwareProfile& profile) {
  const double asked = of(demands, a) + of(demands, b);
  if (of(demands, a) == 0 || of(demands, b) == 0) return 1;
  double factor = asked / profile.tiers[static_cast<std::size_t>(Tier::HostPinned)].bytes_per_s;
  if (is_copy(a) && is_copy(b) && profile.pcie_bytes_per_s > 0)
    factor = std::max(factor, asked / profile.pcie_bytes_per_s);
  return std::max(1.0, factor);
}

}  // namespace

void fit_host_memory(const std::vector<SlowDown>& slow_downs, const std::vector<OpTime>& ops, double triad_bytes_per_s,
                     HardwareProfile& profile) {
  const Demands demands = {{Engine::CpuOptimizer, cpu_optimizer_bytes_per_s(ops)},
                           {Engine::H2D, profile.h2d.bytes_per_s},
                           {Engine::D2H, profile.d2h.bytes_per_s}};
  double most = std::max({triad_bytes_per_s, of(demands, Engine::CpuOptimizer), profile.pcie_bytes_per_s});
  for (const auto& [group, moved] : moved_together(slow_downs, demands)) most = std::max(most, moved);
  CHECK(most > 0, "nothing of the host's memory was measured");
  profile.tiers[static_cast<std::size_t>(Tier::HostPinned)].bytes_per_s = most;
  for (const SlowDown& s : slow_downs) {
    if (s.others.size() != 1) continue;
    const double beyond = machine_factor(s) / by_sharing(s.lane, s.others.front(), demands, profile);
    if (beyond > kLeastInterference) profile.interference[{s.lane, s.others.front()}] = beyond;
  }
}

void fit_device_memory(const std::vector<KernelTime>& memory, HardwareProfile& profile) {
  CHECK(memory.size() > 1, memory.size());
  const double launch_ns = memory.front().ns.median;
  const KernelTime& largest = memory.back();
  profile.tiers[static_cast<std::size_t>(Tier::Device)].bytes_per_s =
      static_cast<double>(largest.kernel.bytes) / std::max(1.0, largest.ns.median - launch_ns) * 1e9;
}

}  // namespace tandem
