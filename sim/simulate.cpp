#include "sim/simulate.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "analysis/told_ranks.hpp"
#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/scheduler/driver.hpp"

namespace tandem {
namespace {

// Of the links of a topology alone: without one, folded ranks share none.
std::optional<AlikeGroups> alike_groups(const Scenario& scenario) {
  if (!scenario.parallel.fold || !scenario.machine.topology) return std::nullopt;
  return AlikeGroups(scenario);
}

}  // namespace

Simulation::Simulation(const Scenario& scenario, Fidelity fidelity, const MakePolicy& make)
    : scenario_(scenario), fidelity_(fidelity) {
  std::vector<const Graph*> graphs, told;
  const std::vector<bool> is_told = told_ranks(scenario);
  for (Rank rank = 0; rank < tandem::rank_count(scenario); ++rank) {
    estimates_.push_back(std::make_unique<CostModel>(scenario.machine));
    schedulers_.push_back(make ? make_scheduler(scenario, *estimates_.back(), rank, make)
                               : make_scheduler(scenario, *estimates_.back(), rank));
    graphs.push_back(&schedulers_.back()->graph());
    told.push_back(is_told[static_cast<std::size_t>(rank)] ? graphs.back() : nullptr);
    if (told.back() == nullptr) schedulers_.back()->forget_what_is_over();
  }
  auto tokens = seeded_tokens(scenario.seed, scenario.workload.keys.integer_or("vocabulary", 1),
                              scenario.workload.keys.integer_or("stop_token", kNone));
  executor_ = std::make_unique<SimgridExecutor>(graphs, scenario.machine, scenario.truth, scenario.seed, fidelity,
                                                std::move(tokens), alike_groups(scenario));
  log_ = std::make_unique<RunLog>(std::move(told), scenario, std::nullopt, [this] {
    for (const auto& scheduler : schedulers_) scheduler->forget_what_is_over();
  });
}

void Simulation::run(EventLog* watcher, MoreInputs more) {
  TeeLog log(*log_, watcher);
  run_into(log, std::move(more));
}

void Simulation::run_into(EventLog& log, MoreInputs more) {
  CHECK(wall_s_ == 0, "a simulation runs once");
  const auto started = std::chrono::steady_clock::now();
  std::vector<Scheduler*> ranks;
  for (const auto& scheduler : schedulers_) ranks.push_back(scheduler.get());
  AddedInputs executor(*executor_, std::move(more));
  try {
    drive(ranks, executor, log);
  } catch (const DeviceError&) {  // ranks wait for each other: for room, if that is what one of them has not
    for (const Scheduler* rank : ranks) rank->explain_stall();
    throw;
  }
  wall_s_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  for (const Scheduler* rank : ranks)
    if (!rank->failure().empty()) throw DeviceError(rank->failure());
}

RunRecord Simulation::record() const {
  RunRecord record;
  record.mode = "simulated";
  record.scenario = &scenario_;
  for (const auto& scheduler : schedulers_) {
    if (!log_->is_told(scheduler->rank())) continue;
    RankRecord rank;
    for (int t = 0; t < kTierCount; ++t) {
      rank.peak_bytes[static_cast<std::size_t>(t)] = scheduler->pool(static_cast<Tier>(t)).peak_bytes();
      rank.evicted_bytes[static_cast<std::size_t>(t)] = scheduler->evicted_bytes(static_cast<Tier>(t));
    }
    record.ranks.push_back(rank);
  }
  log_->describe(record);
  record.memory_shared = fidelity_ == Fidelity::Shared;
  record.wall_s = wall_s_;
  return record;
}

}  // namespace tandem
