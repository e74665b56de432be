// What held a command up: the chain of commands back from its start, each the last-finishing of those that the one
// before it could not start without. Must not know lanes' gaps, steps or formats.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "analysis/timeline.hpp"

namespace tandem {

enum class Cause : std::uint8_t {
  Compute,
  H2D,
  D2H,
  CpuOptimizer,
  CpuCompute,
  Disk,
  Collective,
  P2P,
  Loader,
  Dispatch,
  NoWork,  // the lane had no further command
};
inline constexpr int kCauseCount = 11;
constexpr std::string_view name_of(Cause cause) {
  constexpr std::string_view kNames[] = {"compute",    "h2d", "d2h",    "cpu_optimizer", "cpu_compute", "disk",
                                         "collective", "p2p", "loader", "dispatch",      "no_work"};
  return kNames[static_cast<int>(cause)];
}
Cause cause_of(Engine engine);

// A stretch of time that goes to one cause.
struct Held {
  Cause cause = Cause::Dispatch;
  std::int64_t ns = 0;
  CommandId by = kNoCommand;    // the command that ran; kNoCommand: between two of them
  CommandId next = kNoCommand;  // the command that was still to start
};

// The timeline must outlive it.
class Blame {
 public:
  explicit Blame(const RankTimeline& rank);

  // Splits [begin, end) among causes, where `waiting` started at or after `end`; from the end backwards. The stretches
  // given to `visit` add up to end - begin.
  template <typename Visit>
  void walk(std::int64_t begin, std::int64_t end, CommandId waiting, Visit&& visit) const {
    std::int64_t to = end;
    for (CommandId at = waiting; to > begin;) {
      const CommandId before = held_by(at);
      const std::int64_t until = before == kNoCommand ? begin : std::clamp(rank_.at(before).finished.ns, begin, to);
      visit(Held{between(at, waiting), to - until, kNoCommand, at});
      to = until;
      if (to <= begin) return;
      const std::int64_t from = std::clamp(rank_.at(before).started.ns, begin, to);
      visit(Held{cause_of(rank_.at(before).command->lane.kind()), to - from, before, at});
      to = from;
      at = before;
    }
  }

  // The same for the critical path of [begin, end): back from the compute lane's last command that ended by then.
  template <typename Visit>
  void walk_path(std::int64_t begin, std::int64_t end, Visit&& visit) const {
    const CommandId last = last_computed(end);
    if (last == kNoCommand) return;
    const std::int64_t started = std::max(rank_.at(last).started.ns, begin);
    visit(Held{Cause::Compute, rank_.at(last).finished.ns - started, last, kNoCommand});
    walk(begin, started, last, visit);
  }

  // The last to finish of what `id` could not start before: its dependencies, its lane's order, and the event that made
  // the scheduler issue it. kNoCommand if there is none.
  CommandId held_by(CommandId id) const;

 private:
  CommandId last_computed(std::int64_t end) const;
  // Why `at` did not start as soon as it could.
  Cause between(CommandId at, CommandId waiting) const;

  const RankTimeline& rank_;
  std::vector<CommandId> before_;  // the lane's previous command
};

}  // namespace tandem
