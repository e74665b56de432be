#include "report/csv_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include "analysis/analysis.hpp"
#include "core/base/errors.hpp"
#include "core/scenario/schedule.hpp"

namespace tandem {
namespace {

constexpr std::string_view kHeader =
    "step,loss,validation_loss,learning_rate,gradient_norm,step_time_s,tokens_per_s,skipped,loss_scale\n";

// A line tells of a step's training and evaluation. Saves come after it.
bool counts(const Op& op) { return op.step != kNone && op.phase != Phase::Save; }

// Digits enough to read the same number back; empty where there is none.
std::string cell(std::optional<double> value) { return value ? fmt::format("{}", *value) : ""; }

// A table of an earlier version has fewer columns, all of them first ones.
std::string with_all_cells(std::string line) {
  const auto commas = [](std::string_view text) { return std::count(text.begin(), text.end(), ','); };
  for (auto missing = commas(kHeader) - commas(line); missing > 0; --missing) line += ',';
  return line;
}

// The lines of a table up to a step.
std::string lines_until(const std::string& path, std::int64_t step) {
  std::string lines;
  for (std::string& line : whole_lines("--csv", path))
    if (const long long at = std::atoll(line.c_str()); at >= 1 && at <= step)
      lines += with_all_cells(std::move(line)) + "\n";
  return lines;
}

}  // namespace

CsvLog::CsvLog(std::string path, const Scenario& scenario)
    : scenario_(scenario), file_("--csv", std::move(path)), skipped_(scenario, std::nullopt) {
  if (scenario.first_step > 0) kept_ = lines_until(file_.path(), scenario.first_step);
}

void CsvLog::append(std::span<const Command> commands) {
  const std::lock_guard lock(mutex_);
  if (seen_ == 0) file_.begin(std::string(kHeader) + kept_);
  follow_graph();
  for (const Command& command : commands) {
    if (command.kind != CommandKind::Run) continue;
    const Op& op = graph_->op(command.op);
    if (counts(op)) running_[command.id] = {command.op, command.lane.kind(), command.part.bytes};
  }
}

// A step is appended as a whole, before any of its ops is issued; a save of it may come later.
void CsvLog::follow_graph() {
  for (; seen_ < graph_->op_count(); ++seen_)
    if (const Op& op = graph_->op(seen_); counts(op)) ++steps_[op.step].open_ops;
}

void CsvLog::append(const EventBatch& batch) {
  const std::lock_guard lock(mutex_);
  batches_ += batch.events.empty() ? 0 : 1;
  for (const Event& event : batch.events) {
    const auto run = running_.find(event.command);
    if (run == running_.end()) continue;
    if (event.outcome == Outcome::Finished) take(run->second, event);
    running_.erase(run);
  }
  for (; !steps_.empty() && steps_.begin()->second.open_ops == 0; steps_.erase(steps_.begin()))
    write_step(steps_.begin()->first, steps_.begin()->second, /*over=*/true);
  news_.notify_all();
}

// What is still open then may wait for the save that waits for the line: so it cannot be waited for for ever.
void CsvLog::make_durable(std::int32_t step) {
  constexpr std::chrono::seconds kNothingNew{2};
  std::unique_lock lock(mutex_);
  const auto there = [&] { return lines_until_ >= step || !file_.error().empty(); };
  for (std::int64_t before = -1; !there() && before != batches_;) {
    before = batches_;
    news_.wait_for(lock, kNothingNew, [&] { return there() || batches_ != before; });
  }
  if (!there() && !steps_.empty() && steps_.begin()->first == step)
    write_step(step, steps_.begin()->second, /*over=*/false);
  file_.sync();
}

void CsvLog::take(const Running& run, const Event& event) {
  const Op& op = graph_->op(run.op);
  Step& step = steps_.at(op.step);
  step.figures.take(op, run.engine, event.result, event.finished);
  const std::int64_t bytes = op.writes.empty() ? 0 : graph_->value(op.writes.front().value).bytes;
  if (run.bytes > 0 && run.bytes < bytes && (parts_[run.op] += run.bytes) < bytes) return;
  parts_.erase(run.op);
  --step.open_ops;
}

std::string CsvLog::line_of(std::int32_t number, const StepFigures& figures) const {
  constexpr double kNsPerSecond = 1e9;
  const double step_s = static_cast<double>(figures.end_ns() - step_begin_ns_) / kNsPerSecond;
  const double tokens = tokens_per_step(scenario_.workload);
  SkippedSteps skipped = skipped_;
  const bool was_skipped = skipped.take(figures.gradient_norm());
  return fmt::format("{},{},{},{},{},{},{},{},{}\n", training_step(scenario_, number) + 1, cell(figures.loss()),
                     cell(figures.validation_loss()), learning_rate(scenario_, number), cell(figures.gradient_norm()),
                     step_s, tokens > 0 && step_s > 0 ? fmt::format("{:.6g}", tokens / step_s) : "",
                     was_skipped ? 1 : 0, cell(skipped_.loss_scale()));
}

void CsvLog::write_step(std::int32_t number, Step& step, bool over) {
  const std::string line = line_of(number, step.figures);
  step.has_line ? file_.replace_last(line) : file_.append(line);
  if (!step.has_line && file_.error().empty()) ++lines_;
  step.has_line = true;
  lines_until_ = number;
  if (!over) return;
  skipped_.take(step.figures.gradient_norm());
  step_begin_ns_ = std::max(step.figures.end_ns(), step.figures.evaluation_end_ns());
}

void CsvLog::finish() {
  const std::lock_guard lock(mutex_);
  file_.sync();
  file_.close();
  if (!file_.error().empty())
    throw DeviceError("cannot write " + file_.path() + ": " + file_.error() +
                      "; the run itself is complete, and the table holds its first " + std::to_string(lines_) +
                      " steps");
}

}  // namespace tandem
