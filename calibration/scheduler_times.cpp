#include "calibration/scheduler_times.hpp"

#include <chrono>
#include <memory>

#include "calibration/design.hpp"
#include "core/machine/cost_model.hpp"
#include "core/run/make_scheduler.hpp"
#include "core/scheduler/driver.hpp"
#include "core/scheduler/null_executor.hpp"

namespace tandem {
namespace {

constexpr int kRuns = 9, kQuickRuns = 4;
constexpr std::int32_t kSteps = 20;

// Counts what crosses the seam.
class CountingLog final : public EventLog {
 public:
  void append(const EventBatch&) override {}
  void append(std::span<const Command> commands) override { count_ += static_cast<double>(commands.size()); }
  double count() const { return count_; }

 private:
  double count_ = 0;
};

// Rates that any machine has: here they decide nothing but must be there.
HardwareProfile any_machine() {
  HardwareProfile machine;
  constexpr double kRate = 1e9;
  constexpr std::int64_t kBytes = std::int64_t{1} << 40;
  machine.tiers[static_cast<std::size_t>(Tier::Device)] = {kBytes, kRate};
  machine.tiers[static_cast<std::size_t>(Tier::HostPinned)] = {kBytes, kRate};
  machine.peak_flops[DType::F32] = kRate;
  machine.h2d.bytes_per_s = machine.d2h.bytes_per_s = kRate;
  machine.cpu_flops = machine.cpu_optimizer_parameters_per_s = machine.loader_bytes_per_s = kRate;
  return machine;
}

double run_once_ns(const Scenario& scenario) {
  const CostModel estimate(scenario.machine);
  const auto scheduler = make_scheduler(scenario, estimate);
  NullExecutor executor({});
  CountingLog log;
  Scheduler* ranks[] = {scheduler.get()};
  const auto start = std::chrono::steady_clock::now();
  drive(ranks, executor, log);
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / log.count();
}

}  // namespace

Summary time_decisions(bool quick) {
  Scenario scenario = contention_trial(1).scenario;
  scenario.machine = any_machine();
  scenario.policy.name = "zero_offload";
  scenario.steps = kSteps;
  std::vector<double> ns;
  for (int i = 0; i < (quick ? kQuickRuns : kRuns); ++i) ns.push_back(run_once_ns(scenario));
  return summarize(ns);
}

}  // namespace tandem
