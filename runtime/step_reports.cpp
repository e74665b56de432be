#include "runtime/step_reports.hpp"

#include <algorithm>
#include <utility>

#include "analysis/analysis.hpp"
#include "core/base/engine_names.hpp"
#include "core/scenario/schedule.hpp"

namespace tandem {

StepReports::StepReports(const Graph& graph, const Scenario& scenario, Told told)
    : scenario_(scenario),
      follower_(graph, [this](std::int32_t step, const StepFigures& figures) { end_step(step, figures); }),
      told_(std::move(told)) {}

void StepReports::append(std::span<const Command> commands) {
  follower_.append(commands);
  for (const Command& command : commands)
    if (command.kind == CommandKind::Copy) copies_[command.id] = {command.lane.kind(), command.part.bytes};
}

void StepReports::append(const EventBatch& batch) {
  for (const Event& event : batch.events) {
    const auto copy = copies_.find(event.command);
    if (copy == copies_.end()) continue;
    if (event.outcome == Outcome::Finished) bytes_[std::string(name_of(copy->second.engine))] += copy->second.bytes;
    copies_.erase(copy);
  }
  follower_.append(batch);
}

void StepReports::end_step(std::int32_t step, const StepFigures& figures) {
  if (figures.end_ns() < 0) return;
  constexpr double kNsPerSecond = 1e9;
  StepReport report;
  report.step = training_step(scenario_, step) + 1;
  report.loss = figures.loss();
  report.validation_loss = figures.validation_loss();
  report.gradient_norm = figures.gradient_norm();
  report.learning_rate = learning_rate(scenario_, step);
  report.step_time_s = static_cast<double>(figures.end_ns() - begin_ns_) / kNsPerSecond;
  if (report.step_time_s > 0) report.tokens_per_s = tokens_per_step(scenario_.workload) / report.step_time_s;
  report.bytes = std::exchange(bytes_, {});
  begin_ns_ = std::max(figures.end_ns(), figures.evaluation_end_ns());
  told_(std::move(report));
}

}  // namespace tandem
