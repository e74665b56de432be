#include "report/skip_watch.hpp"

#include <fmt/format.h>

#include <utility>

#include "analysis/step_figures.hpp"
#include "analysis/timeline.hpp"

namespace tandem {

SkipWatch::SkipWatch(EventLog& inner, const Scenario& scenario, const Graph& graph,
                     std::optional<LossScaleState> before, std::function<void(const std::string&)> tell)
    : inner_(&inner), scenario_(scenario), graph_(&graph), steps_(scenario, before), tell_(std::move(tell)) {}

void SkipWatch::append(const EventBatch& batch) {
  inner_->append(batch);
  for (const Event& event : batch.events)
    if (norms_.erase(event.command) > 0 && event.outcome == Outcome::Finished) take(as_double(event.result));
}

void SkipWatch::append(std::span<const Command> commands) {
  inner_->append(commands);
  for (const Command& command : commands)
    if (command.kind == CommandKind::Run && is_gradient_norm(graph_->op(command.op))) norms_.insert(command.id);
}

void SkipWatch::take(double norm) {
  if (!steps_.take(norm)) {
    told_at_ = kSkippedInARow;
    return;
  }
  if (steps_.in_a_row() < told_at_) return;
  told_at_ *= 2;
  const auto last = static_cast<std::int32_t>(steps_.steps());
  tell_(
      fmt::format("{} training steps in a row were skipped, up to step {} of {}: a gradient was not finite, so nothing "
                  "was updated; {}",
                  steps_.in_a_row(), scenario_.first_step + last, scenario_.steps,
                  advice_on_skipped(scenario_, steps_.loss_scale())));
}

}  // namespace tandem
