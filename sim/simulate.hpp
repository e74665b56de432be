// A simulated run put together: workload, policies, one scheduler a rank and the SimGrid executor. What a program, a
// test or a sweep needs to predict a scenario. Must not know flags or files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "analysis/run_log.hpp"
#include "core/machine/cost_model.hpp"
#include "core/run/make_scheduler.hpp"
#include "core/scheduler/added_inputs.hpp"
#include "core/scheduler/scheduler.hpp"
#include "sim/simgrid_executor.hpp"

namespace tandem {

// Owns all that its record points to. The scenario must outlive it. One at a time in a process (see SimgridExecutor).
class Simulation {
 public:
  // Throws ConfigError for a policy or workload that cannot be made. `make`: the policy, instead of one that this build
  // has by the scenario's name.
  explicit Simulation(const Scenario& scenario, Fidelity fidelity = Fidelity::Shared, const MakePolicy& make = nullptr);
  // It is read until the end.
  explicit Simulation(Scenario&&, Fidelity = Fidelity::Shared, const MakePolicy& = nullptr) = delete;

  // Runs to the end, once. All that crosses the seam goes to `watcher`, if there is one; what RunLog keeps, to log().
  // Throws DoesNotFit, and DeviceError if a command failed.
  void run(EventLog* watcher = nullptr, MoreInputs more = nullptr);
  // The same without keeping anything: log() stays empty.
  void run_into(EventLog& log, MoreInputs more = nullptr);

  Rank rank_count() const { return static_cast<Rank>(schedulers_.size()); }
  const Graph& graph(Rank rank = 0) const { return schedulers_[static_cast<std::size_t>(rank)]->graph(); }
  const Rewrites& rewrites() const { return schedulers_.front()->rewrites(); }
  const MemoryLog& log() const { return log_->kept(); }
  RunRecord record() const;

 private:
  const Scenario& scenario_;
  Fidelity fidelity_;
  std::vector<std::unique_ptr<CostModel>> estimates_;  // one a rank: they cache by the rank's own graph
  std::vector<std::unique_ptr<Scheduler>> schedulers_;
  std::unique_ptr<SimgridExecutor> executor_;
  std::unique_ptr<RunLog> log_;
  double wall_s_ = 0;
};

}  // namespace tandem
