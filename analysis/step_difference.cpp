#include "analysis/step_difference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "analysis/blame.hpp"
#include "core/base/units.hpp"

namespace tandem {
namespace {

constexpr std::size_t kLargest = 5;

// A run's commands by what they do: its name with step and version, its lane, its bytes, and the how manyth such.
using Doing = std::tuple<std::string, Engine, std::int64_t, std::int64_t, int>;

class Doings {
 public:
  explicit Doings(const RankTimeline& rank) : of_(rank.commands.size()) {
    std::map<Doing, int> seen;
    for (std::size_t id = 0; id < rank.commands.size(); ++id) {
      const TimedCommand& timed = rank.commands[id];
      if (!timed.done) continue;
      const Command& command = *timed.command;
      Doing doing{command_name(*rank.graph, command), command.lane.kind(), command.part.first_byte, command.part.bytes,
                  0};
      std::get<int>(doing) = seen[doing]++;
      ids_[doing] = static_cast<CommandId>(id);
      of_[id] = std::move(doing);
    }
  }
  const Doing& of(CommandId id) const { return of_[static_cast<std::size_t>(id)]; }
  CommandId find(const Doing& doing) const {
    const auto found = ids_.find(doing);
    return found == ids_.end() ? kNoCommand : found->second;
  }

 private:
  std::map<Doing, CommandId> ids_;
  std::vector<Doing> of_;
};

std::string name_in_every_step(const RankTimeline& rank, const Command& command) {
  if (command.kind == CommandKind::Run) return std::string(rank.graph->label(rank.graph->op(command.op).label));
  return "copy " + rank.graph->tensor_of(command.part.value).name;
}

std::int64_t length_ns(const TimedCommand& timed) { return timed.finished.ns - timed.started.ns; }

class Differences {
 public:
  Differences(const RankTimeline& predicted, const RankTimeline& measured)
      : predicted_(predicted),
        measured_(measured),
        predicted_blame_(predicted),
        measured_blame_(measured),
        of_predicted_(predicted),
        of_measured_(measured) {}

  void add(const Window& window) {
    measured_blame_.walk_path(window.begin_ns, window.end_ns, [&](const Held& held) { add(held); });
  }

  StepDifference result(double predicted_step_s, double measured_step_s, std::int64_t steps) const {
    StepDifference out;
    const double per_step = 1e-9 / static_cast<double>(steps);
    out.step_s = predicted_step_s - measured_step_s;
    out.unmatched_s = unmatched_ns_ * per_step;
    out.other_order_s = out.step_s;
    for (const auto& [key, times] : pieces_) {
      out.largest.push_back({key.second, key.first, times.predicted_ns * per_step, times.measured_ns * per_step});
      const double difference_s = (times.predicted_ns - times.measured_ns) * per_step;
      out.by_cause_s[static_cast<std::size_t>(key.first)] += difference_s;
      out.other_order_s -= difference_s;
    }
    const auto size = [](const CommandDifference& d) { return std::abs(d.predicted_s - d.measured_s); };
    std::stable_sort(out.largest.begin(), out.largest.end(),
                     [&](const auto& a, const auto& b) { return size(a) > size(b); });
    if (out.largest.size() > kLargest) out.largest.resize(kLargest);
    return out;
  }

 private:
  struct Times {
    double predicted_ns = 0, measured_ns = 0;
  };

  // The time that the same stretch takes in the prediction: of a command as a share of it, of a gap as it is there.
  void add(const Held& held) {
    const CommandId id = held.by != kNoCommand ? held.by : held.next;
    const CommandId same = of_predicted_.find(of_measured_.of(id));
    if (same == kNoCommand) {
      unmatched_ns_ += static_cast<double>(held.ns);
      return;
    }
    Times& times = pieces_[{held.cause, name_in_every_step(measured_, *measured_.at(id).command)}];
    times.measured_ns += static_cast<double>(held.ns);
    if (held.by == kNoCommand) {
      times.predicted_ns += static_cast<double>(predicted_gap(id, same, held.ns));
    } else if (const std::int64_t whole = length_ns(measured_.at(id)); whole > 0) {
      times.predicted_ns += static_cast<double>(held.ns) * static_cast<double>(length_ns(predicted_.at(same))) /
                            static_cast<double>(whole);
    }
  }

  // The gap before `same`, where it waited for what `id` waited for; else the gap is as it was measured, `ns`.
  std::int64_t predicted_gap(CommandId id, CommandId same, std::int64_t ns) const {
    const CommandId before = measured_blame_.held_by(id), same_before = predicted_blame_.held_by(same);
    if (before == kNoCommand || same_before == kNoCommand || of_predicted_.find(of_measured_.of(before)) != same_before)
      return ns;
    return predicted_.at(same).started.ns - predicted_.at(same_before).finished.ns;
  }

  const RankTimeline& predicted_;
  const RankTimeline& measured_;
  Blame predicted_blame_, measured_blame_;
  Doings of_predicted_, of_measured_;
  std::map<std::pair<Cause, std::string>, Times> pieces_;
  double unmatched_ns_ = 0;
};

}  // namespace

StepDifference step_difference(const Analysis& predicted, const Analysis& measured) {
  Differences differences(predicted.timeline.ranks.front(), measured.timeline.ranks.front());
  for (const Window& window : measured.steps.windows) differences.add(window);
  return differences.result(predicted.steady_step_s, measured.steady_step_s, measured.steps.window_steps());
}

std::string difference_text(const StepDifference& difference) {
  const auto signed_time = [](double s) { return (s < 0 ? "-" : "+") + format_time(std::abs(s)); };
  std::string text =
      fmt::format("mean step, predicted minus measured: {}, along the commands that the measured step went by\n",
                  signed_time(difference.step_s));
  for (int cause = 0; cause < kCauseCount; ++cause)
    if (const double s = difference.by_cause_s[static_cast<std::size_t>(cause)]; s != 0)
      text += fmt::format("  {:<16} {:>10}\n", name_of(static_cast<Cause>(cause)), signed_time(s));
  text += fmt::format("  {:<16} {:>10}\n", "other order", signed_time(difference.other_order_s));
  if (difference.unmatched_s > 0)
    text += fmt::format("  ({} of the measured step are commands that the prediction does not have)\n",
                        format_time(difference.unmatched_s));
  for (const CommandDifference& command : difference.largest)
    text += fmt::format("  {:<44} {:>10} predicted, {:>10} measured\n",
                        command.name + (command.cause == Cause::Dispatch ? ", before it" : ""),
                        format_time(command.predicted_s), format_time(command.measured_s));
  return text;
}

nlohmann::ordered_json to_json(const StepDifference& difference) {
  nlohmann::ordered_json causes = nlohmann::ordered_json::object(), largest = nlohmann::ordered_json::array();
  for (int cause = 0; cause < kCauseCount; ++cause)
    if (const double s = difference.by_cause_s[static_cast<std::size_t>(cause)]; s != 0)
      causes[std::string(name_of(static_cast<Cause>(cause)))] = s;
  for (const CommandDifference& command : difference.largest)
    largest.push_back({{"command", command.name},
                       {"cause", name_of(command.cause)},
                       {"predicted_s", command.predicted_s},
                       {"measured_s", command.measured_s}});
  return {{"step_s", difference.step_s},
          {"by_cause_s", causes},
          {"other_order_s", difference.other_order_s},
          {"unmatched_s", difference.unmatched_s},
          {"largest", largest}};
}

}  // namespace tandem
