#include "runtime/rank_links.hpp"

#include <memory>
#include <set>

#include "core/run/make_scheduler.hpp"

namespace tandem {

std::vector<RankGroup> links_of(const Scenario& scenario, const CostModel& estimate, Rank rank) {
  std::vector<RankGroup> links = transfer_groups(scenario, rank);
  if (links.empty() || server_count(scenario) > 0) return links;
  const std::unique_ptr<Scheduler> look = make_scheduler(scenario, estimate, rank);
  std::vector<Command> commands;
  look->on_events({}, commands);  // which makes the first step's ops
  std::set<std::int32_t> used;
  for (OpId op = 0; op < look->graph().op_count(); ++op) used.insert(look->graph().op(op).match_group);
  std::erase_if(links, [&](const RankGroup& link) { return !used.contains(link.number); });
  return links;
}

}  // namespace tandem
