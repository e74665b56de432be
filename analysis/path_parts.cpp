#include "analysis/path_parts.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace tandem {
namespace {

std::string what_ran(const RankTimeline& rank, CommandId id) {
  if (id == kNoCommand) return "";
  const Command& command = *rank.at(id).command;
  if (command.kind == CommandKind::Run) return rank.graph->work_of(rank.graph->op(command.op)).body;
  return std::string(name_of(rank.graph->tensor_of(command.part.value).reported_role()));
}

}  // namespace

std::vector<PathPart> path_parts(const Timeline& timeline, const Steps& steps) {
  std::map<std::pair<Cause, std::string>, std::int64_t> sums;
  for (const RankTimeline& rank : timeline.ranks) {
    const Blame blame(rank);
    for (const Window& window : steps.windows)
      blame.walk_path(window.begin_ns, window.end_ns, [&](const Held& held) {
        if (held.ns > 0) sums[{held.cause, what_ran(rank, held.by)}] += held.ns;
      });
  }
  const double times = static_cast<double>(steps.window_steps()) * static_cast<double>(timeline.ranks.size());
  std::vector<PathPart> parts;
  for (const auto& [key, ns] : sums) parts.push_back({key.first, key.second, seconds(ns) / times});
  std::stable_sort(parts.begin(), parts.end(),
                   [](const PathPart& a, const PathPart& b) { return a.seconds > b.seconds; });
  return parts;
}

}  // namespace tandem
