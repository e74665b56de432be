#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "calibration/fit_profile.hpp"
#include "calibration/slow_down_model.hpp"
#include "core/machine/host_memory.hpp"
#include "core/scheduler/check.hpp"

namespace tandem {
namespace {

// A pair's loss below this is noise.
constexpr double kLeastInterference = 1.01;
// Weights that are tried, and the steps of the search.
constexpr double kLeastWeight = 0.25, kMostWeight = 8, kWeightStep = 1.0905077326652577;  // 2^(1/8)
constexpr double kBandwidthStep = 1.01;
constexpr double kNoPreference = 1e-6;  // decides between what fits equally well

// Lanes that were busy at once, with the rates that they got of the host's memory.
struct Group {
  MemoryRates wanted{}, got{};
};

std::size_t index(Engine lane) { return static_cast<std::size_t>(lane); }

// What the lanes of each group wanted and got. Kernels use the device's memory: a group with them is one without.
std::vector<Group> groups_of(const std::vector<SlowDown>& slow_downs, const MemoryRates& alone) {
  std::map<std::set<Engine>, Group> groups;
  for (const SlowDown& s : slow_downs) {
    std::set<Engine> lanes(s.others.begin(), s.others.end());
    lanes.insert(s.lane);
    Group& group = groups[lanes];
    group.wanted[index(s.lane)] = alone[index(s.lane)];
    group.got[index(s.lane)] = alone[index(s.lane)] / machine_factor(s);
  }
  std::vector<Group> out;
  for (const auto& [lanes, group] : groups) out.push_back(group);
  return out;
}

// How far the profile's sharing is from what the groups got: a sum of squares of relative errors.
double misfit(const std::vector<Group>& groups, const HardwareProfile& profile) {
  double sum = 0;
  for (const Group& group : groups) {
    const MemoryRates modelled = share_host_memory(profile, group.wanted);
    for (std::size_t lane = 0; lane < modelled.size(); ++lane)
      if (group.got[lane] > 0) sum += std::pow(std::log(modelled[lane] / group.got[lane]), 2);
  }
  return sum;
}

double& bandwidth(HardwareProfile& profile) {
  return profile.tiers[static_cast<std::size_t>(Tier::HostPinned)].bytes_per_s;
}

// From `first` to `last`, both included.
std::vector<double> geometric(double first, double last, double step) {
  std::vector<double> values;
  for (double value = first; value < last; value *= step) values.push_back(value);
  values.push_back(last);
  return values;
}

// The bandwidth and the weights of copies (the optimizer's is 1) that fit best, by trying them. Those that make no
// difference are 1.
void search(const std::vector<Group>& groups, const std::vector<double>& bandwidths, HardwareProfile& profile) {
  HardwareProfile tried = profile;
  double best = std::numeric_limits<double>::infinity();
  const std::vector<double> weights = geometric(kLeastWeight, kMostWeight, kWeightStep);
  for (const double up : weights)
    for (const double down : weights)
      for (const double bytes_per_s : bandwidths) {
        tried.memory_weights = {{Engine::H2D, up}, {Engine::D2H, down}};
        bandwidth(tried) = bytes_per_s;
        const double from_one = std::pow(std::log(up), 2) + std::pow(std::log(down), 2);
        const double error = misfit(groups, tried) + kNoPreference * from_one;
        if (error >= best) continue;
        best = error;
        profile.memory_weights = tried.memory_weights;
        bandwidth(profile) = bytes_per_s;
      }
}

}  // namespace

void fit_host_memory(const std::vector<SlowDown>& slow_downs, const std::vector<OpTime>& ops, double triad_bytes_per_s,
                     HardwareProfile& profile) {
  const MemoryRates alone = host_memory_rates(ops, profile);
  const double least =
      std::max({triad_bytes_per_s, *std::max_element(alone.begin(), alone.end()), profile.pcie_bytes_per_s});
  CHECK(least > 0, "nothing of the host's memory was measured");
  const double all = std::accumulate(alone.begin(), alone.end(), 0.0);
  search(groups_of(slow_downs, alone), geometric(least, std::max(least, all), kBandwidthStep), profile);
  for (const SlowDown& s : slow_downs) {
    if (s.others.size() != 1 || (alone[index(s.lane)] > 0 && alone[index(s.others.front())] > 0)) continue;
    const double factor = machine_factor(s);
    if (factor > kLeastInterference) profile.interference[{s.lane, s.others.front()}] = factor;
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
