// A simulated run of several ranks under the checks that every run must stand: order of bytes, and what they hold.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/scheduler/contents.hpp"
#include "core/scheduler/happens_before.hpp"
#include "sim/simulate.hpp"

namespace tandem::testing {

struct CheckedRank {
  std::string violation;
  std::int64_t checked = 0;  // pairs of commands
};

// Ranks of a group meet in the order of one lane each: on two, these might come in another order elsewhere.
inline std::string groups_on_two_lanes(const Graph& graph) {
  std::map<std::int32_t, std::pair<Engine, int>> lane_of;
  for (OpId id = 0; id < graph.op_count(); ++id) {
    const Op& op = graph.op(id);
    if (op.match_group == kNone) continue;
    const std::pair lane{op.engine, int{op.lane_number}};
    if (lane_of.emplace(op.match_group, lane).first->second != lane)
      return "group " + std::to_string(op.match_group) + " is on two lanes: " + graph.op_name(id);
  }
  return "";
}

// Runs it; by rank.
inline std::vector<CheckedRank> run_checked(Simulation& simulation) {
  NoLog none;
  EventLog* next = &none;
  std::vector<std::unique_ptr<Contents>> contents;
  std::vector<std::unique_ptr<HappensBefore>> orders;
  for (Rank rank = 0; rank < simulation.rank_count(); ++rank) {
    contents.push_back(std::make_unique<Contents>(simulation.graph(rank), rank, next));
    orders.push_back(std::make_unique<HappensBefore>(simulation.graph(rank), rank, contents.back().get()));
    next = orders.back().get();
  }
  simulation.run(next);
  std::vector<CheckedRank> ranks;
  for (std::size_t rank = 0; rank < orders.size(); ++rank)
    ranks.push_back({orders[rank]->violation() + contents[rank]->violation() +
                         groups_on_two_lanes(simulation.graph(static_cast<Rank>(rank))),
                     orders[rank]->checked()});
  return ranks;
}

}  // namespace tandem::testing
