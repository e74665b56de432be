#include "analysis/run_log.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace tandem {

RunLog::RunLog(std::vector<const Graph*> graphs, const Scenario& scenario, std::optional<LossScaleState> before,
               std::function<void()> full)
    : graphs_(std::move(graphs)), full_(std::move(full)) {
  const auto steps =
      std::max<std::int64_t>(scenario.steps - scenario.first_step, scenario.workload.keys.integer_or("new_tokens", 0));
  if (steps > kDetailedSteps) totals_.emplace(graphs_, scenario, before);
}

void RunLog::append(const EventBatch& batch) {
  if (totals_) totals_->append(batch);
  if (first_graphs_.empty()) kept_.append(batch);
}

void RunLog::append(std::span<const Command> commands) {
  if (totals_) totals_->append(commands);
  if (!first_graphs_.empty()) return;
  kept_.append(commands);
  if (!totals_ || !is_full(commands)) return;
  for (const Graph* graph : graphs_) first_graphs_.push_back(*graph);
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
  CHECK(record.ranks.size() == graphs_.size(), record.ranks.size(), graphs_.size());
  const bool is_cut = !first_graphs_.empty();
  record.log = &kept_;
  record.totals = is_cut ? &*totals_ : nullptr;
  for (std::size_t i = 0; i < graphs_.size(); ++i) record.ranks[i].graph = is_cut ? &first_graphs_[i] : graphs_[i];
}

}  // namespace tandem
