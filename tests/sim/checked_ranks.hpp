// A simulated run of several ranks under the checks that every run must stand: order of bytes, and what they hold.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/scheduler/contents.hpp"
#include "core/scheduler/happens_before.hpp"
#include "sim/simulate.hpp"

namespace tandem::testing {

struct CheckedRank {
  std::string violation;
  std::int64_t checked = 0;  // pairs of commands
};

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
    ranks.push_back({orders[rank]->violation() + contents[rank]->violation(), orders[rank]->checked()});
  return ranks;
}

}  // namespace tandem::testing
