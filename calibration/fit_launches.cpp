#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "calibration/fit.hpp"
#include "calibration/launch_times.hpp"
#include "calibration/slow_down_model.hpp"
#include "calibration/text.hpp"
#include "core/machine/cost_model.hpp"
#include "core/machine/slow_down.hpp"

namespace tandem {
namespace {

constexpr std::array kOthers = {Engine::H2D, Engine::D2H, Engine::CpuOptimizer};
// Ops that take less than so many times what launching them takes may have waited for that.
constexpr double kWaits = 1.5;
// The first coefficient is what the op takes alone, and is 1.
constexpr double kPinned = 1e-4, kFree = 10, kPriorWeight = 1e-6;

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

// An op beside busy lanes, of which the same is known alone.
struct Beside {
  const LaunchTime* time;
  double alone_ns, alone_launch_ns, dispatch_ns;
  std::uint16_t busy;
};

// Those of one body that add to gradients take longer than those that write them, by their sizes.
using Alike = std::tuple<std::string, std::vector<std::int64_t>, bool>;
Alike alike(const LaunchTime& time) { return {time.work.body, time.work.sizes, time.recorded}; }

std::vector<Beside> all_beside(const std::vector<LaunchTime>& times, const HardwareProfile& profile) {
  std::map<Alike, const LaunchTime*> alone;
  for (const LaunchTime& time : times)
    if (time.others.empty()) alone[alike(time)] = &time;
  std::vector<Beside> out;
  for (const LaunchTime& time : times) {
    const auto body = profile.bodies.find(time.work.body);
    const auto same = alone.find(alike(time));
    if (time.others.empty() || CostModel::is_update(time.work) || body == profile.bodies.end() || same == alone.end())
      continue;
    const auto dispatch_ns = static_cast<double>(body->second.dispatch_ns);
    const LaunchTime& one = *same->second;
    if (dispatch_ns > 0 && one.ns > kWaits * dispatch_ns)
      out.push_back({&time, one.ns, one.launch_ns, dispatch_ns, busy_lanes(time)});
  }
  return out;
}

// What later starts add, beyond the interference of lanes.
FitRow row_of_starts(const Beside& op, const MemoryRates& rates, const HardwareProfile& profile) {
  const auto factors = slow_downs(profile, rates, op.busy);
  FitRow row{{factors[static_cast<std::size_t>(Engine::Compute)]}, op.time->ns / op.alone_ns};
  for (const Engine lane : kOthers) {
    const double share = op.dispatch_ns / op.alone_ns * factors[static_cast<std::size_t>(lane)];
    row.terms.push_back(op.busy & engine_bit(lane) ? share : 0);
  }
  return row;
}

FitRow row_of_launch(const Beside& op) {
  FitRow row{{1}, op.time->launch_ns / op.alone_launch_ns};
  for (const Engine lane : kOthers) row.terms.push_back(op.busy & engine_bit(lane) ? 1 : 0);
  return row;
}

}  // namespace

void fit_launches_beside(const std::vector<LaunchTime>& times, const std::vector<OpTime>& ops,
                         HardwareProfile& profile) {
  const MemoryRates rates = host_memory_rates(ops, profile);
  std::vector<FitRow> afresh, repeated, launches;
  for (const Beside& op : all_beside(times, profile)) {
    (op.time->recorded ? repeated : afresh).push_back(row_of_starts(op, rates, profile));
    if (!op.time->recorded) launches.push_back(row_of_launch(op));
  }
  if (afresh.empty()) return;
  const auto starts = solve(afresh), longer = solve(launches);
  const auto repeated_starts = repeated.empty() ? starts : solve(repeated);
  for (std::size_t i = 0; i < kOthers.size(); ++i)
    profile.launches_beside[kOthers[i]] = {starts[i], repeated_starts[i], 1 + longer[i]};
}

std::vector<std::string> launch_report(const std::vector<LaunchTime>& times, const std::vector<OpTime>& ops,
                                       const HardwareProfile& profile) {
  const MemoryRates rates = host_memory_rates(ops, profile);
  std::vector<std::string> lines;
  for (const Beside& op : all_beside(times, profile)) {
    const auto factors = slow_downs(profile, rates, op.busy);
    const double modelled_ns = op.alone_ns * factors[static_cast<std::size_t>(Engine::Compute)] +
                               op.dispatch_ns * later_starts(profile, factors, op.busy, op.time->recorded);
    std::string line = op.time->work.body + (op.time->recorded ? ", recorded, beside" : " beside");
    for (const Engine lane : op.time->others) line += " " + std::string(name_of(lane));
    lines.push_back(line + printed(": %.4g us, modelled %.4g, alone %.4g; launched in %.4g us, alone %.4g",
                                   op.time->ns / 1e3, modelled_ns / 1e3, op.alone_ns / 1e3, op.time->launch_ns / 1e3,
                                   op.alone_launch_ns / 1e3));
  }
  return lines;
}

}  // namespace tandem
