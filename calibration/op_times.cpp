#include "calibration/op_times.hpp"

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "calibration/text.hpp"
#include "core/base/check.hpp"
#include "runtime/executors/launch_clock.hpp"

namespace tandem {
namespace {

struct Times {
  std::vector<double> ns, launch_ns, late_ns, repeated_ns, repeat_ns, record_ns;

  void add(double op_ns, const LaunchClock::Launch& launch) {
    using How = LaunchClock::How;
    if (launch.how == How::Recorded) return record_ns.push_back(launch.ns);
    (launch.how == How::Afresh ? ns : repeated_ns).push_back(op_ns);
    (launch.how == How::Afresh ? launch_ns : repeat_ns).push_back(launch.ns);
  }
};
using Samples = std::map<std::pair<WorkId, Engine>, Times>;

constexpr int kMostPasses = 20, kLatePasses = 4;
// Where in the order of an op's launches one lies that follows another of its kind, as most of a network's blocks do:
// of the trials' two blocks the second's takes down to half as long as the first's.
constexpr double kWarm = 0.25;

constexpr double kMedian = 0.5;

double quantile_or_none(const std::vector<double>& values, double share) {
  return values.empty() ? 0 : quantile(values, share);
}

// Ops that are launched afresh have been timed without others' recordings beside them.
void take_recorded(const Samples& from, Samples& to) {
  for (const auto& [key, times] : from) {
    Times& target = to[key];
    target.repeated_ns = times.repeated_ns;
    target.repeat_ns = times.repeat_ns;
    target.record_ns = times.record_ns;
  }
}

// Returns the time that the pass took.
double run_pass(Workbench& bench, LaunchClock* clock, const std::vector<OpId>& ops, Engine engine, Samples& samples) {
  for (const OpId id : ops) bench.add_run(id, engine);
  const Workbench::Turn turn = bench.execute();
  CHECK(turn.events.size() == ops.size(), turn.events.size(), ops.size());
  std::vector<LaunchClock::Launch> launches;
  if (clock != nullptr) launches = clock->take();
  launches.resize(ops.size());
  for (std::size_t i = 0; i < ops.size(); ++i)
    samples[{bench.graph().op(ops[i]).work, engine}].add(duration_ns(turn.events[i]), launches[i]);
  return static_cast<double>(turn.last_seen.ns - turn.before_submit.ns);
}

// A device that computes without a pause lowers its clock to keep to its power limit, which a profile knows apart
// (PowerLimit): ops are to be timed at the full one. Half as long as a pass takes, it waits.
void pause_after(double pass_ns) {
  constexpr double kPause = 0.5;
  std::this_thread::sleep_for(std::chrono::nanoseconds(static_cast<std::int64_t>(kPause * pass_ns)));
}

// The first pass is all page faults: it is not counted.
void run_passes(Workbench& bench, LaunchClock* clock, const std::vector<OpId>& ops, Engine engine, int least,
                double budget_ns, Samples& samples) {
  Samples cold;
  run_pass(bench, clock, ops, engine, cold);
  double spent_ns = 0;
  for (int pass = 0; pass < least || (spent_ns < budget_ns && pass < kMostPasses); ++pass) {
    const double pass_ns = run_pass(bench, clock, ops, engine, samples);
    if (clock != nullptr) pause_after(pass_ns);
    spent_ns += pass_ns;
  }
}

// Each op by itself, launched when the device has nothing to do.
void run_late(Workbench& bench, LaunchClock& clock, Samples& samples) {
  Samples ones;
  for (int pass = 0; pass < kLatePasses; ++pass)
    for (const OpId id : bench.ops()) run_pass(bench, &clock, {id}, Engine::Compute, ones);
  for (const auto& [key, times] : ones) samples[key].late_ns = times.ns;
}

}  // namespace

void copy_operands_to_host(Workbench& bench, const std::vector<OpId>& ops) {
  for (const OpId id : ops)
    for (const ValueId read : bench.graph().op(id).reads)
      bench.add_copy(Engine::D2H, bench.offset(read), bench.graph().value(read).bytes);
  bench.execute();
}

std::string network_name(const Scenario& scenario) {
  const WorkloadOptions& w = scenario.workload;
  std::string name = printed("%s hidden %lld, batch %lld", w.family.c_str(),
                             static_cast<long long>(w.keys.integer_or("hidden", 0)), static_cast<long long>(w.batch));
  if (w.keys.has("sequence")) name += printed(" x %lld", static_cast<long long>(w.keys.integer("sequence")));
  return name;
}

namespace {

std::vector<OpId> ops_on(const Workbench& bench, const std::vector<OpId>& ops, Engine engine) {
  std::vector<OpId> on;
  for (const OpId id : ops)
    if (bench.graph().op(id).may_run_on(engine)) on.push_back(id);
  return on;
}

std::vector<OpTime> times_of(const Workbench& bench, const Trial& trial, const Samples& samples) {
  std::map<WorkId, std::int64_t> counts;
  for (const OpId id : bench.ops()) ++counts[bench.graph().op(id).work];
  std::vector<OpTime> times;
  for (const auto& [key, of_work] : samples)
    times.push_back({bench.graph().work(key.first),
                     key.second,
                     network_name(trial.scenario),
                     trial.held_out,
                     summarize(of_work.ns),
                     counts[key.first],
                     quantile_or_none(of_work.launch_ns, kWarm),
                     quantile_or_none(of_work.late_ns, kMedian),
                     {quantile_or_none(of_work.repeated_ns, kMedian), quantile_or_none(of_work.repeat_ns, kWarm),
                      quantile_or_none(of_work.record_ns, kMedian)}});
  return times;
}

// Bodies of a step of plain training.
std::set<std::string> plain_bodies(Scenario scenario) {
  scenario.optimizer = OptimizerOptions{};
  Graph graph;
  find_workload(scenario.workload.family)->make(scenario, {})->prologue(graph);
  std::set<std::string> bodies;
  for (WorkId id = 0; id < graph.work_count(); ++id) bodies.insert(graph.work(id).body);
  return bodies;
}

}  // namespace

std::vector<OpTime> time_ops(const Trial& trial, int least_passes, double budget_ns, const BenchDevice& device) {
  const auto clock = device.device ? std::make_shared<LaunchClock>(device.device) : nullptr;
  Workbench bench(trial.scenario, 0, {clock, device.library}, trial.rewrites, trial.times_update);
  Samples samples;
  bench.record_launches(false);
  run_passes(bench, clock.get(), bench.ops(), Engine::Compute, least_passes, budget_ns / (clock ? 2 : 1), samples);
  if (clock) {
    run_late(bench, *clock, samples);
    bench.record_launches(true);
    Samples with_recorded;
    run_pass(bench, clock.get(), bench.ops(), Engine::Compute, with_recorded);  // records
    run_passes(bench, clock.get(), bench.ops(), Engine::Compute, least_passes, budget_ns / 2, with_recorded);
    take_recorded(with_recorded, samples);
  }
  if (trial.times_update) {
    const std::vector<OpId> updates = ops_on(bench, bench.ops(), Engine::CpuOptimizer);
    copy_operands_to_host(bench, updates);
    run_passes(bench, nullptr, updates, Engine::CpuOptimizer, least_passes, budget_ns / 4, samples);
  }
  return times_of(bench, trial, samples);
}

std::vector<OpTime> time_ops_on(Engine engine, const Trial& trial, int least_passes, double budget_ns,
                                const BenchDevice& device) {
  Workbench bench(trial.scenario, 0, device, trial.rewrites, trial.times_update);
  Samples samples;
  run_passes(bench, nullptr, ops_on(bench, bench.ops(), engine), engine, least_passes, budget_ns, samples);
  return times_of(bench, trial, samples);
}

std::vector<OpTime> time_update(const Trial& trial, int least_passes, double budget_ns, const BenchDevice& device) {
  const auto clock = device.device ? std::make_shared<LaunchClock>(device.device) : nullptr;
  Workbench bench(trial.scenario, 0, {clock, device.library}, trial.rewrites);
  const std::set<std::string> plain = plain_bodies(trial.scenario);
  std::vector<OpId> ops;
  for (const OpId id : bench.ops())
    if (!plain.contains(bench.graph().work(bench.graph().op(id).work).body)) ops.push_back(id);
  Samples samples, whole;
  bench.record_launches(false);
  run_pass(bench, clock.get(), ops_on(bench, bench.ops(), Engine::Compute), Engine::Compute, whole);
  run_passes(bench, clock.get(), ops_on(bench, ops, Engine::Compute), Engine::Compute, least_passes, budget_ns,
             samples);
  const std::vector<OpId> updates = ops_on(bench, ops, Engine::CpuOptimizer);
  copy_operands_to_host(bench, updates);
  run_passes(bench, nullptr, updates, Engine::CpuOptimizer, least_passes, budget_ns, samples);
  return times_of(bench, trial, samples);
}

}  // namespace tandem
