#include "calibration/dry_run.hpp"

#include "core/base/errors.hpp"
#include "core/policies/common/estimate_executor.hpp"
#include "core/run/make_scheduler.hpp"
#include "core/scheduler/driver.hpp"

namespace tandem {
namespace {

class OpCounts final : public EventLog {
 public:
  OpCounts(const Graph& graph, std::map<OpKey, std::int64_t>& ops) : graph_(graph), ops_(ops) {}
  void append(const EventBatch&) override {}
  void append(std::span<const Command> commands) override {
    for (const Command& command : commands) {
      if (command.kind != CommandKind::Run || !is_measured_on(command.lane.kind())) continue;
      const Op& op = graph_.op(command.op);
      if (op.step != kNone) ++ops_[op_key(graph_.work_of(op), command.lane.kind())];
    }
  }

 private:
  const Graph& graph_;
  std::map<OpKey, std::int64_t>& ops_;
};

}  // namespace

DryRun dry_run(const Scenario& scenario, std::int32_t steps) {
  Scenario trial = scenario;
  trial.steps = steps;
  const CostModel estimate(trial.machine);
  DryRun out;
  try {
    const std::unique_ptr<Scheduler> scheduler = make_scheduler(trial, estimate);
    EstimateExecutor executor(scheduler->graph(), estimate, trial.workload.devices);
    OpCounts counts(scheduler->graph(), out.ops);
    Scheduler* ranks[] = {scheduler.get()};
    drive(ranks, executor, counts);
    out.fits = true;
    out.host_bytes = scheduler->pool(Tier::HostPinned).peak_bytes();
  } catch (const DoesNotFit& error) {
    out.why_not = error.what();
  }
  return out;
}

}  // namespace tandem
