#include "analysis/equal_ranks.hpp"

#include <algorithm>
#include <cstdlib>

namespace tandem {
namespace {

bool same_work(const RankTimeline& a, const Command& of_a, const RankTimeline& b, const Command& of_b) {
  if (of_a.kind != of_b.kind || of_a.part.bytes != of_b.part.bytes) return false;
  if (of_a.kind == CommandKind::Copy)
    return a.graph->tensor_of(of_a.part.value).name == b.graph->tensor_of(of_b.part.value).name;
  const Op &op_a = a.graph->op(of_a.op), &op_b = b.graph->op(of_b.op);
  return op_a.phase == op_b.phase && op_a.step == op_b.step && a.graph->label(op_a.label) == b.graph->label(op_b.label);
}

bool equal(const RankTimeline& a, const RankTimeline& b, std::int64_t grain_ns) {
  for (std::size_t place = 0; place < a.lanes.size(); ++place) {
    if (a.lanes[place].size() != b.lanes[place].size()) return false;
    for (std::size_t i = 0; i < a.lanes[place].size(); ++i) {
      const TimedCommand &of_a = a.at(a.lanes[place][i]), &of_b = b.at(b.lanes[place][i]);
      if (std::abs(of_a.started.ns - of_b.started.ns) > grain_ns ||
          std::abs(of_a.finished.ns - of_b.finished.ns) > grain_ns || !same_work(a, *of_a.command, b, *of_b.command))
        return false;
    }
  }
  return true;
}

}  // namespace

std::vector<std::vector<std::size_t>> equal_ranks(const Timeline& timeline, std::int64_t grain_ns) {
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < timeline.ranks.size(); ++i) {
    const auto found = std::find_if(groups.begin(), groups.end(), [&](const std::vector<std::size_t>& group) {
      return equal(timeline.ranks[group.front()], timeline.ranks[i], grain_ns);
    });
    found == groups.end() ? groups.push_back({i}) : found->push_back(i);
  }
  return groups;
}

}  // namespace tandem
