// Follows a run while it goes on, and says what each training step came to once all of its ops, on all ranks, have
// finished. Watches what crosses the seam; keeps only what is under way. Must not know worlds, nor who asks.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/step_figures.hpp"
#include "core/scheduler/event_log.hpp"

namespace tandem {

class StepFollower final : public EventLog {
 public:
  // Of an op of a step that has finished, or of a part of it.
  using Ended = std::function<void(std::int32_t step, const StepFigures&)>;
  // The graphs, by rank, may still grow; they must outlive this object. Null: nothing of that rank will come. `ended`
  // is called in the order of steps.
  StepFollower(std::vector<const Graph*> graphs, Ended ended);
  // Of one process of several, whose rank is not 0: its graph is that of whatever rank its commands have.
  StepFollower(const Graph& graph, Ended ended) : StepFollower(std::vector{&graph}, std::move(ended)) {}

  void append(const EventBatch& batch) override;
  void append(std::span<const Command> commands) override;

 private:
  struct Step {
    StepFigures figures;
    std::int64_t open_ops = 0;  // that have yet to finish
  };
  struct Running {
    OpId op = kNone;
    Engine engine = Engine::Compute;
    std::int64_t bytes = 0;  // of a divisible op's first write; 0: the whole op
  };
  struct RankState {
    const Graph* graph = nullptr;
    OpId seen = 0;  // ops of the graph that are counted
    std::unordered_map<CommandId, Running> running;
    std::unordered_map<OpId, std::int64_t> parts;  // bytes that are done, of ops that run in parts
  };

  RankState& of(Rank rank) { return ranks_[ranks_.size() == 1 ? 0 : static_cast<std::size_t>(rank)]; }
  void follow_graph(RankState& rank);
  void take(RankState& rank, const Running& run, const Event& event);

  std::vector<RankState> ranks_;
  std::map<std::int32_t, Step> steps_;  // that have not ended
  Ended ended_;
};

}  // namespace tandem
