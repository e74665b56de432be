#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <numbers>
#include <numeric>
#include <set>

#include "calibration/fit_profile.hpp"
#include "calibration/slow_down_model.hpp"
#include "core/base/check.hpp"
#include "core/machine/host_memory.hpp"

namespace tandem {
namespace {

// A pair's loss below this is noise.
constexpr double kLeastInterference = 1.01;
// What is tried, and the steps of the search.
constexpr double kLeastWeight = 0.25, kMostWeight = 8, kLeastCost = 0.25, kMostCost = 2;
constexpr double kCoarseStep = std::numbers::sqrt2, kLeastStep = 1.002;
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

// Bandwidth, and weights and costs of copies (to the device, from it); the optimizer's are 1.
enum Figure : std::uint8_t { kBandwidth, kUpWeight, kDownWeight, kUpCost, kDownCost };
constexpr std::size_t kFigures = 5;
using Sharing = std::array<double, kFigures>;

void put_into(HardwareProfile& profile, const Sharing& sharing) {
  bandwidth(profile) = sharing[kBandwidth];
  profile.memory_weights = {{Engine::H2D, {sharing[kUpWeight], sharing[kUpCost]}},
                            {Engine::D2H, {sharing[kDownWeight], sharing[kDownCost]}}};
}

class Search {
 public:
  Search(const std::vector<Group>& groups, const Sharing& least, const Sharing& most, const HardwareProfile& profile)
      : groups_(&groups), least_(least), most_(most), tried_(profile) {}

  // Everything by large steps, then from the best by smaller and smaller ones, of one figure or of two at once: what
  // one costs more another may cost less.
  Sharing best() {
    for_all(0, least_);
    for (double step = kCoarseStep; step > kLeastStep; step = std::sqrt(step))
      while (improves(step)) {
      }
    return best_;
  }

 private:
  void for_all(std::size_t figure, Sharing sharing) {
    if (figure == kFigures) return static_cast<void>(try_out(sharing));
    for (const double value : geometric(least_[figure], most_[figure], kCoarseStep)) {
      sharing[figure] = value;
      for_all(figure + 1, sharing);
    }
  }

  bool improves(double step) {
    const Sharing from = best_;
    bool better = false;
    const auto moved = [&](Sharing sharing, std::size_t figure, double by) {
      sharing[figure] = std::clamp(sharing[figure] * by, least_[figure], most_[figure]);
      return sharing;
    };
    for (std::size_t one = 0; one < kFigures; ++one)
      for (std::size_t other = one; other < kFigures; ++other)
        for (const double by : {step, 1 / step})
          for (const double other_by : {step, 1 / step}) {
            const Sharing first = moved(from, one, by);
            better = try_out(one == other ? first : moved(first, other, other_by)) || better;
          }
    return better;
  }

  // What makes little difference is 1.
  static double from_one(const Sharing& sharing) {
    double sum = 0;
    for (std::size_t figure = kUpWeight; figure < kFigures; ++figure) sum += std::pow(std::log(sharing[figure]), 2);
    return sum;
  }

  bool try_out(const Sharing& sharing) {
    put_into(tried_, sharing);
    const double error = misfit(*groups_, tried_) + kNoPreference * from_one(sharing);
    if (error >= error_) return false;
    error_ = error;
    best_ = sharing;
    return true;
  }

  const std::vector<Group>* groups_;
  Sharing least_, most_;
  HardwareProfile tried_;
  Sharing best_{};
  double error_ = std::numeric_limits<double>::infinity();
};

// The bandwidth is the most that the memory was seen to give, whatever to: bounds, and a simulation's link, count plain
// bytes. Costs are more in proportion.
void in_plain_bytes(const std::vector<Group>& groups, double most, HardwareProfile& profile) {
  for (const Group& group : groups) {
    const MemoryRates got = share_host_memory(profile, group.wanted);
    if (got != group.wanted) most = std::max(most, std::accumulate(got.begin(), got.end(), 0.0));
  }
  const double more = most / bandwidth(profile);
  if (more <= 1) return;
  profile.memory_weights[Engine::CpuOptimizer];
  for (auto& [lane, weight] : profile.memory_weights) weight.cost *= more;
  bandwidth(profile) = most;
}

}  // namespace

void fit_host_memory(const std::vector<SlowDown>& slow_downs, const std::vector<OpTime>& ops, double triad_bytes_per_s,
                     HardwareProfile& profile) {
  const MemoryRates alone = host_memory_rates(ops, profile);
  const double least = *std::max_element(alone.begin(), alone.end());
  CHECK(least > 0, "nothing of the host's memory was measured");
  const double all = std::accumulate(alone.begin(), alone.end(), 0.0);
  const std::vector<Group> groups = groups_of(slow_downs, alone);
  Search search(groups, {least, kLeastWeight, kLeastWeight, kLeastCost, kLeastCost},
                {all, kMostWeight, kMostWeight, kMostCost, kMostCost}, profile);
  put_into(profile, search.best());
  in_plain_bytes(groups, std::max(triad_bytes_per_s, profile.pcie_bytes_per_s), profile);
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
