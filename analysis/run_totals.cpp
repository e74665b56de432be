#include "analysis/run_totals.hpp"

#include <algorithm>

namespace tandem {

RunTotals::RunTotals(std::vector<const Graph*> graphs, const Scenario& scenario, std::optional<LossScaleState> before)
    : graphs_(graphs),
      follower_(std::move(graphs), [this](std::int32_t step, const StepFigures& f) { end_step(step, f); }),
      skipped_(scenario, before),
      steps_(static_cast<std::size_t>(std::max(scenario.steps - scenario.first_step, 0))),
      open_(graphs_.size()) {
  const auto& validation = scenario.validation;
  if (validation.every > 0) evaluations_.reserve(steps_.size() / static_cast<std::size_t>(validation.every) + 2);
}

void RunTotals::append(std::span<const Command> commands) {
  follower_.append(commands);
  for (const Command& command : commands) {
    if (command.kind == CommandKind::Release) continue;
    ++commands_;
    const std::size_t rank = graphs_.size() == 1 ? 0 : static_cast<std::size_t>(command.lane.rank);
    const bool runs = command.kind == CommandKind::Run;
    open_[rank][command.id] = {command.lane.index, runs ? 0 : command.part.bytes,
                               runs && graphs_[rank]->op(command.op).phase == Phase::Save};
  }
}

void RunTotals::append(const EventBatch& batch) {
  for (const Event& event : batch.events) {
    auto& open = open_[graphs_.size() == 1 ? 0 : static_cast<std::size_t>(event.rank)];
    const auto found = open.find(event.command);
    if (found == open.end()) continue;
    if (event.outcome == Outcome::Finished) {
      LaneTotal& lane = lanes_[{event.rank, found->second.lane}];
      ++lane.commands;
      lane.bytes += found->second.bytes;
      if (found->second.saves) save_ns_ += event.finished.ns - event.started.ns;
      makespan_ns_ = std::max(makespan_ns_, event.finished.ns);
    }
    open.erase(found);
  }
  follower_.append(batch);
}

void RunTotals::end_step(std::int32_t step, const StepFigures& figures) {
  if (figures.end_ns() < 0) return;  // of decoding: a step that computes nothing
  if (complete_ == steps_.size()) steps_.emplace_back();
  StepTotal& total = steps_[complete_++];
  total.end_ns = figures.end_ns();
  total.evaluation_end_ns = figures.evaluation_end_ns();
  total.has_loss = figures.loss().has_value();
  total.loss = figures.loss().value_or(0);
  total.has_norm = figures.gradient_norm().has_value();
  total.gradient_norm = figures.gradient_norm().value_or(0);
  skipped_.take(figures.gradient_norm());
  if (const auto loss = figures.validation_loss()) evaluations_.push_back({step, *loss});
}

}  // namespace tandem
