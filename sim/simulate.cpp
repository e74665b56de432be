#include "sim/simulate.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/scenario/errors.hpp"
#include "core/scheduler/check.hpp"
#include "core/scheduler/driver.hpp"
#include "core/scheduler/policy.hpp"
#include "core/workloads/workload.hpp"

namespace tandem {
namespace {

// What the run's log keeps and what its watcher sees are the same.
class TeeLog final : public EventLog {
 public:
  TeeLog(EventLog& first, EventLog* second) : first_(first), second_(second) {}
  void append(const EventBatch& batch) override {
    first_.append(batch);
    if (second_ != nullptr) second_->append(batch);
  }
  void append(std::span<const Command> commands) override {
    first_.append(commands);
    if (second_ != nullptr) second_->append(commands);
  }

 private:
  EventLog& first_;
  EventLog* second_;
};

std::unique_ptr<Policy> make_policy(const Scenario& scenario) {
  const PolicyEntry* entry = find_policy(scenario.policy.name);
  if (entry == nullptr) throw ConfigError("policy.name: no policy is called '" + scenario.policy.name + "'");
  return entry->make(scenario);
}

std::unique_ptr<StepSource> make_source(const Scenario& scenario, const Policy& policy) {
  const WorkloadEntry* entry = find_workload(scenario.workload.family);
  if (entry == nullptr)
    throw ConfigError("workload.family: no workload family is called '" + scenario.workload.family + "'");
  return entry->make(scenario, policy.traits().graph);
}

}  // namespace

Simulation::Simulation(const Scenario& scenario, Fidelity fidelity) : scenario_(scenario), fidelity_(fidelity) {
  const auto ranks = static_cast<Rank>(std::max<std::int64_t>(scenario.workload.devices, 1));
  std::vector<const Graph*> graphs;
  for (Rank rank = 0; rank < ranks; ++rank) {
    auto policy = make_policy(scenario);
    auto source = make_source(scenario, *policy);
    estimates_.push_back(std::make_unique<CostModel>(scenario.machine));
    schedulers_.push_back(
        std::make_unique<Scheduler>(scenario, *estimates_.back(), std::move(source), std::move(policy), rank, ranks));
    graphs.push_back(&schedulers_.back()->graph());
  }
  auto tokens = seeded_tokens(scenario.seed, std::max<std::int64_t>(scenario.workload.vocabulary, 1),
                              scenario.workload.stop_token);
  executor_ = std::make_unique<SimgridExecutor>(graphs, scenario.machine, scenario.truth, scenario.seed, fidelity,
                                                std::move(tokens));
}

void Simulation::run(EventLog* watcher) {
  TeeLog log(log_, watcher);
  run_into(log);
}

void Simulation::run_into(EventLog& log) {
  CHECK(wall_s_ == 0, "a simulation runs once");
  const auto started = std::chrono::steady_clock::now();
  std::vector<Scheduler*> ranks;
  for (const auto& scheduler : schedulers_) ranks.push_back(scheduler.get());
  drive(ranks, *executor_, log);
  wall_s_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  for (const Scheduler* rank : ranks)
    if (!rank->failure().empty()) throw DeviceError(rank->failure());
}

RunRecord Simulation::record() const {
  RunRecord record;
  record.mode = "simulated";
  record.scenario = &scenario_;
  for (const auto& scheduler : schedulers_) {
    RankRecord rank;
    rank.graph = &scheduler->graph();
    for (int t = 0; t < kTierCount; ++t)
      rank.peak_bytes[static_cast<std::size_t>(t)] = scheduler->pool(static_cast<Tier>(t)).peak_bytes();
    record.ranks.push_back(rank);
  }
  record.log = &log_;
  record.memory_shared = fidelity_ == Fidelity::Shared;
  record.wall_s = wall_s_;
  return record;
}

}  // namespace tandem
