#include "analysis/stalls.hpp"

#include <algorithm>
#include <vector>

#include "analysis/blame.hpp"

namespace tandem {
namespace {

// Adds what a lane does in a window. `from` is the lane's first command that may reach into it; returns the same for
// the next window. on_gap(begin, end, command): the lane stands idle until it starts the command.
template <typename OnGap>
std::size_t add_window(const RankTimeline& rank, const std::vector<CommandId>& lane, Window window, std::size_t from,
                       LaneUse& use, const OnGap& on_gap) {
  std::int64_t free_from = window.begin_ns;
  std::size_t next = from;
  for (std::size_t i = from; i < lane.size(); ++i) {
    const TimedCommand& timed = rank.at(lane[i]);
    const std::int64_t begin = std::clamp(timed.started.ns, window.begin_ns, window.end_ns);
    const std::int64_t end = std::clamp(timed.finished.ns, window.begin_ns, window.end_ns);
    if (begin > free_from) on_gap(free_from, begin, lane[i]);
    use.busy_ns += std::max<std::int64_t>(0, end - std::max(begin, free_from));
    free_from = std::max(free_from, end);
    if (timed.finished.ns <= window.end_ns) next = i + 1;
    if (timed.started.ns >= window.end_ns) break;  // it has ended the window's last gap
  }
  use.idle_ns[static_cast<std::size_t>(Cause::NoWork)] += window.end_ns - free_from;
  return next;
}

LaneUse use_of(const RankTimeline& rank, const std::vector<CommandId>& lane, const std::vector<Window>& windows,
               const Blame& blame) {
  LaneUse use;
  use.commands = static_cast<std::int64_t>(lane.size());
  for (CommandId id : lane)
    if (rank.at(id).command->kind == CommandKind::Copy) use.bytes += rank.at(id).command->part.bytes;
  const auto blame_for = [&](std::int64_t begin, std::int64_t end, CommandId waiting) {
    blame.walk(begin, end, waiting,
               [&](const Held& held) { use.idle_ns[static_cast<std::size_t>(held.cause)] += held.ns; });
  };
  std::size_t from = 0;
  for (const Window& window : windows) from = add_window(rank, lane, window, from, use, blame_for);
  return use;
}

}  // namespace

std::array<LaneUse, kLaneCount> lane_uses(const RankTimeline& rank, const std::vector<Window>& windows) {
  const Blame blame(rank);
  std::array<LaneUse, kLaneCount> uses;
  for (std::size_t lane = 0; lane < uses.size(); ++lane)
    if (!rank.lanes[lane].empty()) uses[lane] = use_of(rank, rank.lanes[lane], windows, blame);
  return uses;
}

std::int64_t busy_ns(const RankTimeline& rank, LaneIndex lane, const std::vector<Window>& windows) {
  LaneUse use;
  std::size_t from = 0;
  for (const Window& window : windows)
    from = add_window(rank, rank.lane(lane), window, from, use, [](std::int64_t, std::int64_t, CommandId) {});
  return use.busy_ns;
}

}  // namespace tandem
