#include "core/policies/common/trial.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/errors.hpp"
#include "core/policies/common/estimate_executor.hpp"
#include "core/policies/common/first_step.hpp"
#include "core/scenario/capacity.hpp"
#include "core/scheduler/scheduler.hpp"
#include "core/workloads/workload.hpp"

namespace tandem {
namespace {

// In the third step all has been where it is from then on: states that stay on the host in turn do so every other step.
constexpr std::int32_t kTrialSteps = 3;

// When it ended; none where it stands still.
std::optional<std::int64_t> end_of(Scheduler& scheduler, const CostModel& estimate, std::int64_t ranks) {
  EstimateExecutor executor(scheduler.graph(), estimate, ranks);
  std::vector<Command> commands;
  for (EventBatch batch;; batch = executor.wait(scheduler.wake())) {
    scheduler.on_events(batch, commands);
    executor.submit(commands);
    commands.clear();
    if (scheduler.finished()) return batch.observed.ns;
    if (!executor.in_flight() && scheduler.wake() == kNever) return std::nullopt;
  }
}

std::optional<std::int64_t> run_trial(const Scenario& trial, std::unique_ptr<Policy> policy) {
  const CostModel estimate(trial.machine);
  auto source = find_workload(trial.workload.family)->make(trial, policy->traits().rewrites);
  try {
    Scheduler scheduler(trial, estimate, std::move(source), std::move(policy), 0,
                        static_cast<Rank>(ranks_on_host(trial)));
    return end_of(scheduler, estimate, trial.workload.devices);
  } catch (const DoesNotFit&) {
    return std::nullopt;
  }
}

}  // namespace

bool fits_in_trial(const Scenario& scenario, std::unique_ptr<Policy> policy) {
  Scenario trial = scenario;
  trial.steps = std::min(scenario.steps - scenario.first_step, kTrialSteps);
  trial.first_step = 0;
  trial.checkpoint = {};
  trial.workload.micro_batches = std::min(scenario.workload.micro_batches, kFirstStepMicroBatches);
  return run_trial(trial, std::move(policy)).has_value();
}

std::optional<std::int64_t> trial_ns(const Scenario& scenario, std::unique_ptr<Policy> policy, std::int32_t first_step,
                                     std::int32_t steps) {
  Scenario trial = scenario;
  trial.steps = first_step + steps;
  trial.first_step = first_step;
  trial.resume_folder.clear();
  trial.checkpoint = {};
  trial.validation.every = 0;
  return run_trial(trial, std::move(policy));
}

}  // namespace tandem
