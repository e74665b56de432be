// A world in which every command takes as long as the cost model says it takes alone, for trials of one rank: events
// come in the order in which a run would have them, which decides what is where when room gets short.
// Must not know policies.
#pragma once

#include <array>
#include <deque>
#include <queue>
#include <utility>
#include <vector>

#include "core/graph/graph.hpp"
#include "core/machine/cost_model.hpp"
#include "core/scheduler/seam.hpp"

namespace tandem {

class EstimateExecutor final : public Executor {
 public:
  // Both must outlive it; a collective has so many ranks.
  EstimateExecutor(const Graph& graph, const CostModel& estimate, std::int64_t ranks)
      : graph_(graph), estimate_(estimate), ranks_(ranks) {}

  void submit(std::span<const Command> commands) override;
  EventBatch wait(TimeNs deadline) override;
  bool in_flight() const override { return in_flight_ > 0; }

 private:
  using End = std::pair<std::int64_t, CommandId>;  // time in ns

  std::int64_t duration_ns(const Command& command) const;
  void start(std::size_t lane);
  void finish(CommandId id, std::vector<Event>& events);

  const Graph& graph_;
  const CostModel& estimate_;
  std::int64_t ranks_;
  std::array<std::deque<Command>, kLaneCount> lanes_;
  std::array<bool, kLaneCount> busy_{};
  std::vector<bool> done_;                                           // by command id
  std::vector<std::size_t> lane_of_;                                 // likewise
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;  // of what runs
  std::int64_t in_flight_ = 0, now_ns_ = 0;
};

}  // namespace tandem
