#include "calibration/launch_times.hpp"

#include <map>
#include <memory>
#include <utility>

#include "calibration/mix.hpp"
#include "calibration/statistics.hpp"
#include "runtime/executors/launch_clock.hpp"

namespace tandem {
namespace {

constexpr int kRounds = 7, kQuickRounds = 3;
constexpr double kRoundNs = 30e6, kMedian = 0.5;

// Compute last: what is launched op by op keeps the thread that also starts copies.
const std::vector<std::vector<Engine>> kGroups = {
    {Engine::Compute},
    {Engine::H2D, Engine::Compute},
    {Engine::D2H, Engine::Compute},
    {Engine::H2D, Engine::D2H, Engine::Compute},
    {Engine::CpuOptimizer, Engine::Compute},
    {Engine::CpuOptimizer, Engine::H2D, Engine::Compute},
    {Engine::CpuOptimizer, Engine::D2H, Engine::Compute},
    {Engine::CpuOptimizer, Engine::H2D, Engine::D2H, Engine::Compute},
};

struct Samples {
  std::vector<double> ns, launch_ns;
};
using Key = std::pair<std::size_t, WorkId>;  // the group and the op's

// One round of a group.
void run_round(Workbench& bench, Mix& mix, LaunchClock& clock, std::size_t group, bool recorded,
               std::map<Key, Samples>& samples) {
  const std::vector<Command> commands = bench.commands();
  clock.take();
  const Workbench::Turn turn = mix.execute();
  const std::vector<LaunchClock::Launch> launches = clock.take();
  const Busy busy = all_busy(turn, commands);
  std::size_t launched = 0;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    if (commands[i].lane.kind() != Engine::Compute) continue;
    const LaunchClock::Launch& launch = launches.at(launched++);
    if (!busy.holds(turn.events[i]) || (launch.how == LaunchClock::How::Repeated) != recorded) continue;
    Samples& of = samples[{group, bench.graph().op(commands[i].op).work}];
    of.ns.push_back(duration_ns(turn.events[i]));
    of.launch_ns.push_back(launch.ns);
  }
}

std::vector<Engine> others_of(const std::vector<Engine>& group) { return {group.begin(), group.end() - 1}; }

}  // namespace

std::vector<LaunchTime> time_launches(const Trial& trial, const CopyDesign& copies, const BenchDevice& device,
                                      bool quick) {
  const auto clock = std::make_shared<LaunchClock>(device.device);
  Workbench bench(trial.scenario, copies.scratch_bytes, {clock, device.library}, trial.rewrites);
  std::vector<LaunchTime> out;
  for (const bool recorded : {false, true}) {
    bench.record_launches(recorded);
    Mix mix(bench, copies);
    std::map<Key, Samples> samples;
    // Rounds go over all groups, so that a noisy moment touches each of them a little and none of them much.
    for (int round = 0; round < (quick ? kQuickRounds : kRounds); ++round)
      for (std::size_t g = 0; g < kGroups.size(); ++g) {
        for (const Engine lane : kGroups[g]) mix.add(lane, kRoundNs);
        run_round(bench, mix, *clock, g, recorded, samples);
      }
    for (const auto& [key, of] : samples)
      out.push_back({bench.graph().work(key.second), others_of(kGroups[key.first]), recorded, quantile(of.ns, kMedian),
                     quantile(of.launch_ns, kMedian)});
  }
  return out;
}

}  // namespace tandem
