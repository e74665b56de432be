// The progress bar.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "cli/cli.hpp"
#include "core/base/units.hpp"
#include "report/summary.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kShowAfterNs = 2'000'000'000;
constexpr std::int64_t kPrintEveryNs = 100'000'000;
constexpr int kWidth = 40;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Progress::Progress(std::string label, bool quiet)
    : label_(std::move(label)),
      enabled_(!quiet && ::isatty(STDERR_FILENO) == 1),
      started_ns_(now_ns()),
      printed_ns_(0) {}

Progress::~Progress() {
  if (shown_) std::fputs("\r\x1b[K", stderr);  // leaves a clean line
}

void Progress::update(double fraction) {
  if (!enabled_) return;
  const std::int64_t now = now_ns();
  if (now - started_ns_ < kShowAfterNs || now - printed_ns_ < kPrintEveryNs) return;
  printed_ns_ = now;
  shown_ = true;
  const double done = std::clamp(fraction, 0.0, 1.0);
  const double left = done > 0 ? seconds(now - started_ns_) * (1 - done) / done : 0;
  const std::string text = fmt::format("\r{} [{}] {:>6}{}\x1b[K", label_, bar({{"", '=', 0, done}}, kWidth, {}),
                                       format_percent(done), done > 0 ? ", " + format_time(left) + " left" : "");
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

ProgressLog::ProgressLog(EventLog& inner, std::int32_t steps, bool quiet, const Graph* graph, Rank rank)
    : inner_(&inner), graph_(graph), rank_(rank), progress_("training steps", quiet), steps_(std::max(1, steps)) {}

void ProgressLog::append(const EventBatch& batch) {
  inner_->append(batch);
  progress_.update(static_cast<double>(steps_begun_) / steps_);
}

void ProgressLog::append(std::span<const Command> commands) {
  inner_->append(commands);
  if (graph_ == nullptr) return;
  // The step whose ops were issued last: lanes' queues are short beside a run that is worth a bar.
  for (const Command& command : commands)
    if (command.kind == CommandKind::Run && command.lane.rank == rank_)
      steps_begun_ = std::max(steps_begun_, graph_->op(command.op).step);
}

}  // namespace tandem
