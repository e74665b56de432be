#include "report/csv_log.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <string_view>

#include "analysis/analysis.hpp"
#include "core/base/errors.hpp"
#include "core/base/input_file.hpp"
#include "core/scenario/schedule.hpp"

namespace tandem {
namespace {

constexpr std::string_view kHeader =
    "step,loss,validation_loss,learning_rate,gradient_norm,step_time_s,tokens_per_s,skipped,loss_scale\n";

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
  if (!other_than_a_file(path).empty()) return "";
  std::ifstream in(path);
  std::string lines;
  for (std::string line; std::getline(in, line);)
    if (const long long at = std::atoll(line.c_str()); at >= 1 && at <= step) lines += with_all_cells(line) + "\n";
  return lines;
}

}  // namespace

CsvLog::CsvLog(std::string path, const Scenario& scenario)
    : path_(std::move(path)),
      scenario_(scenario),
      descriptor_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644)),
      skipped_(scenario, std::nullopt) {
  if (descriptor_ < 0)
    throw ConfigError("--csv " + path_ + ": cannot be written: " + std::strerror(errno) +
                      "; name a file in a folder that you may write to");
  if (scenario.first_step > 0) kept_ = lines_until(path_, scenario.first_step);
}

CsvLog::~CsvLog() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void CsvLog::append(std::span<const Command> commands) {
  if (seen_ == 0) {
    // A device or a pipe has nothing to cut off.
    if (::ftruncate(descriptor_, 0) != 0 && errno != EINVAL) error_ = std::strerror(errno);
    write(std::string(kHeader) + kept_);
  }
  follow_graph();
  for (const Command& command : commands)
    if (command.kind == CommandKind::Run && graph_->op(command.op).step != kNone)
      running_[command.id] = {command.op, command.lane.engine, command.part.bytes};
}

// A step is appended as a whole, before any of its ops is issued.
void CsvLog::follow_graph() {
  for (; seen_ < graph_->op_count(); ++seen_)
    if (graph_->op(seen_).step != kNone) ++steps_[graph_->op(seen_).step].open_ops;
}

void CsvLog::append(const EventBatch& batch) {
  for (const Event& event : batch.events) {
    const auto run = running_.find(event.command);
    if (run == running_.end()) continue;
    if (event.outcome == Outcome::Finished) take(run->second, event);
    running_.erase(run);
  }
  for (; !steps_.empty() && steps_.begin()->second.open_ops == 0; steps_.erase(steps_.begin()))
    write_step(steps_.begin()->first, steps_.begin()->second.figures);
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

void CsvLog::write_step(std::int32_t step, const StepFigures& figures) {
  constexpr double kNsPerSecond = 1e9;
  const double step_s = static_cast<double>(figures.end_ns() - step_begin_ns_) / kNsPerSecond;
  step_begin_ns_ = std::max(figures.end_ns(), figures.evaluation_end_ns());
  const double tokens = tokens_per_step(scenario_.workload);
  const std::optional<double> loss_scale = skipped_.loss_scale();
  const bool skipped = skipped_.take(figures.gradient_norm());
  write(fmt::format("{},{},{},{},{},{},{},{},{}\n", training_step(scenario_, step) + 1, cell(figures.loss()),
                    cell(figures.validation_loss()), learning_rate(scenario_, step), cell(figures.gradient_norm()),
                    step_s, tokens > 0 && step_s > 0 ? fmt::format("{:.6g}", tokens / step_s) : "", skipped ? 1 : 0,
                    cell(loss_scale)));
  if (error_.empty()) ++lines_;
}

void CsvLog::write(const std::string& text) {
  for (std::size_t done = 0; error_.empty() && done < text.size();) {
    const ssize_t written = ::write(descriptor_, text.data() + done, text.size() - done);
    if (written >= 0) done += static_cast<std::size_t>(written);
    if (written < 0 && errno != EINTR) error_ = std::strerror(errno);
  }
}

void CsvLog::finish() {
  if (::close(descriptor_) != 0 && error_.empty()) error_ = std::strerror(errno);
  descriptor_ = -1;
  if (!error_.empty())
    throw DeviceError("cannot write " + path_ + ": " + error_ +
                      "; the run itself is complete, and the table holds its first " + std::to_string(lines_) +
                      " steps");
}

}  // namespace tandem
