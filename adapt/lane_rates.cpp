#include "adapt/lane_rates.hpp"

#include <algorithm>
#include <utility>

namespace tandem {
namespace {

// Less than this share of a step says little: latencies and chance weigh too much in it.
constexpr double kLeastShare = 0.02;

}  // namespace

LaneRates::LaneRates(const Graph& graph, const HardwareProfile& profile, std::function<void(const StepRates&)> each)
    : graph_(graph), cost_(profile), each_(std::move(each)) {}

double LaneRates::predicted_ns(const Command& command) const {
  if (command.kind == CommandKind::Copy)
    return static_cast<double>(cost_.copy_ns(command.lane.kind(), command.part.bytes));
  const Op& op = graph_.op(command.op);
  if (op.engine == Engine::Collective) return 0;
  const std::int64_t whole = op.writes.empty() ? 0 : graph_.value(op.writes.front().value).bytes;
  const std::int64_t part = op.divisible && command.part.bytes > 0 ? command.part.bytes : whole;
  return static_cast<double>(cost_.run_part_ns(graph_, op.work, command.lane.kind(), part, whole));
}

void LaneRates::take(std::span<const Command> commands) {
  for (const Command& command : commands) {
    if (command.kind == CommandKind::Release) continue;
    const bool computes = command.kind == CommandKind::Run && command.lane.kind() == Engine::Compute;
    open_[command.id] = {command.lane.kind(), computes ? graph_.op(command.op).step : kNone, predicted_ns(command)};
    ++queued_[static_cast<std::size_t>(command.lane.kind())];
  }
}

// A step is over when the next one's first op is: what ran meanwhile on other lanes counts for it.
void LaneRates::take(const EventBatch& batch) {
  for (const Event& event : batch.events) {
    const auto found = open_.find(event.command);
    if (found == open_.end()) continue;
    const Open open = found->second;
    open_.erase(found);
    --queued_[static_cast<std::size_t>(open.lane)];
    if (event.outcome != Outcome::Finished) continue;
    if (open.step > step_) end_step(open.step);
    const auto lane = static_cast<std::size_t>(open.lane);
    now_.busy_ns[lane] += event.finished.ns - event.started.ns;
    predicted_ns_[lane] += open.predicted_ns;
    if (open.step != kNone) now_.end_ns = std::max(now_.end_ns, event.finished.ns);
  }
}

void LaneRates::end_step(std::int32_t next) {
  if (step_ != kNone) {
    now_.step = step_;
    now_.queued = queued_;
    const double length = static_cast<double>(now_.end_ns - now_.begin_ns);
    for (std::size_t i = 0; i < predicted_ns_.size(); ++i)
      if (predicted_ns_[i] > 0 && static_cast<double>(now_.busy_ns[i]) > kLeastShare * length)
        now_.times[i] = static_cast<double>(now_.busy_ns[i]) / predicted_ns_[i];
    each_(now_);
  }
  const std::int64_t end_ns = now_.end_ns;
  now_ = {};
  now_.begin_ns = now_.end_ns = end_ns;
  predicted_ns_.fill(0);
  step_ = next;
}

}  // namespace tandem
