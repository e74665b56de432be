#include "analysis/run_log.hpp"

#include <algorithm>
#include <iterator>

#include "analysis/timeline.hpp"
#include "core/base/check.hpp"

namespace tandem {

RunLog::RunLog(std::vector<const Graph*> graphs, const Scenario& scenario, std::optional<LossScaleState> before,
               std::function<void()> full)
    : graphs_(std::move(graphs)),
      all_told_(std::find(graphs_.begin(), graphs_.end(), nullptr) == graphs_.end()),
      full_(std::move(full)) {
  const auto steps =
      std::max<std::int64_t>(scenario.steps - scenario.first_step, scenario.workload.keys.integer_or("new_tokens", 0));
  if (steps > kDetailedSteps) totals_.emplace(graphs_, scenario, before);
}

void RunLog::append(const EventBatch& batch) {
  if (all_told_) return take(batch);
  EventBatch told{batch.observed, {}, batch.inputs};
  std::copy_if(batch.events.begin(), batch.events.end(), std::back_inserter(told.events),
               [this](const Event& event) { return is_told(event.rank); });
  take(told);
}

void RunLog::append(std::span<const Command> commands) {
  if (all_told_) return take(commands);
  std::vector<Command> told;
  for (const Command& command : commands) {
    if (is_told(rank_of(command)))
      told.push_back(command);
    else
      commands_of_others_ += command.kind != CommandKind::Release;
  }
  take(told);
}

void RunLog::take(const EventBatch& batch) {
  if (totals_) totals_->append(batch);
  if (first_graphs_.empty()) kept_.append(batch);
}

void RunLog::take(std::span<const Command> commands) {
  if (totals_) totals_->append(commands);
  if (!first_graphs_.empty()) return;
  kept_.append(commands);
  if (!totals_ || !is_full(commands)) return;
  for (const Graph* graph : graphs_)
    if (graph != nullptr) first_graphs_.push_back(*graph);
  full_();
}

bool RunLog::is_full(std::span<const Command> commands) {
  commands_ += static_cast<std::int64_t>(commands.size());
  for (const Command& command : commands)
    if (command.kind == CommandKind::Run) {
      const std::size_t rank = graphs_.size() == 1 ? 0 : static_cast<std::size_t>(command.lane.rank);
      steps_begun_ = std::max(steps_begun_, graphs_[rank]->op(command.op).step + 1);
    }
  return steps_begun_ > kDetailedSteps || (steps_begun_ > kLeastDetailed && commands_ > kMostCommands);
}

void RunLog::describe(RunRecord& record) const {
  const bool is_cut = !first_graphs_.empty();
  record.log = &kept_;
  record.totals = is_cut ? &*totals_ : nullptr;
  std::vector<Rank> told;
  for (std::size_t rank = 0; rank < graphs_.size(); ++rank)
    if (graphs_[rank] != nullptr) told.push_back(static_cast<Rank>(rank));
  CHECK(record.ranks.size() == told.size(), record.ranks.size(), told.size());
  for (std::size_t i = 0; i < told.size(); ++i)
    record.ranks[i].graph = is_cut ? &first_graphs_[i] : graphs_[static_cast<std::size_t>(told[i])];
  if (all_told_) return;
  record.told = std::move(told);
  record.commands_of_others = commands_of_others_;
}

}  // namespace tandem
