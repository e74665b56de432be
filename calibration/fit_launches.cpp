#include <array>
#include <map>
#include <string>

#include "calibration/fit.hpp"
#include "calibration/launch_times.hpp"
#include "calibration/slow_down_model.hpp"
#include "core/machine/cost_model.hpp"
#include "core/machine/slow_down.hpp"

namespace tandem {
namespace {

constexpr std::array kOthers = {Engine::H2D, Engine::D2H, Engine::CpuOptimizer};
// Ops that take less than so many times what launching them takes may have waited for that.
constexpr double kWaits = 1.5;
// The first coefficient is what the op takes alone, and is 1.
constexpr double kPinned = 1e-4, kFree = 10, kPriorWeight = 1e-6;

using Alone = std::map<std::pair<std::string, bool>, const LaunchTime*>;  // by body, and whether launches are recorded

std::uint16_t busy_lanes(const LaunchTime& time) {
  std::uint16_t busy = engine_bit(Engine::Compute);
  for (const Engine lane : time.others) busy = static_cast<std::uint16_t>(busy | engine_bit(lane));
  return busy;
}

// Of each of kOthers, what one unit of it adds to the op's time over its time alone.
std::array<double, kOthers.size()> solve(const std::vector<FitRow>& rows) {
  FitPrior prior{{1, 0, 0, 0}, {kPinned, kFree, kFree, kFree}, kPriorWeight};
  const std::vector<double> x = fit_nonnegative(rows, prior);
  return {x[1], x[2], x[3]};
}

// What later starts add, beyond the interference of lanes.
FitRow row_of_starts(const LaunchTime& time, double alone_ns, double dispatch_ns, const MemoryRates& rates,
                     const HardwareProfile& profile) {
  const std::uint16_t busy = busy_lanes(time);
  const auto factors = slow_downs(profile, rates, busy);
  FitRow row{{factors[static_cast<std::size_t>(Engine::Compute)]}, time.ns / alone_ns};
  for (const Engine lane : kOthers)
    row.terms.push_back(busy & engine_bit(lane) ? dispatch_ns / alone_ns * factors[static_cast<std::size_t>(lane)] : 0);
  return row;
}

FitRow row_of_launch(const LaunchTime& time, double alone_ns) {
  FitRow row{{1}, time.launch_ns / alone_ns};
  for (const Engine lane : kOthers) row.terms.push_back(busy_lanes(time) & engine_bit(lane) ? 1 : 0);
  return row;
}

}  // namespace

void fit_launches_beside(const std::vector<LaunchTime>& times, const std::vector<OpTime>& ops,
                         HardwareProfile& profile) {
  Alone alone;
  for (const LaunchTime& time : times)
    if (time.others.empty()) alone[{time.work.body, time.recorded}] = &time;
  const MemoryRates rates = host_memory_rates(ops, profile);
  std::vector<FitRow> afresh, repeated, launches;
  for (const LaunchTime& time : times) {
    const auto body = profile.bodies.find(time.work.body);
    const auto by_itself = alone.find({time.work.body, time.recorded});
    if (time.others.empty() || CostModel::is_update(time.work) || body == profile.bodies.end() ||
        by_itself == alone.end())
      continue;
    const auto dispatch_ns = static_cast<double>(body->second.dispatch_ns);
    const LaunchTime& one = *by_itself->second;
    if (dispatch_ns == 0 || one.ns < kWaits * dispatch_ns) continue;
    (time.recorded ? repeated : afresh).push_back(row_of_starts(time, one.ns, dispatch_ns, rates, profile));
    if (!time.recorded) launches.push_back(row_of_launch(time, one.launch_ns));
  }
  if (afresh.empty()) return;
  const auto starts = solve(afresh), longer = solve(launches);
  const auto repeated_starts = repeated.empty() ? starts : solve(repeated);
  for (std::size_t i = 0; i < kOthers.size(); ++i)
    profile.launches_beside[kOthers[i]] = {starts[i], repeated_starts[i], 1 + longer[i]};
}

}  // namespace tandem
