// What a run of any length comes to: a few numbers a training step, and sums, gathered while it goes on. A long run's
// reports have these of all of it, and the rest of its first steps alone. Must not know formats or worlds.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "analysis/skipped_steps.hpp"
#include "analysis/step_follower.hpp"

namespace tandem {

class RunTotals final : public EventLog {
 public:
  struct StepTotal {
    std::int64_t end_ns = 0, evaluation_end_ns = -1;  // as of StepFigures
    double loss = 0, gradient_norm = 0;
    bool has_loss = false, has_norm = false;
  };
  struct Evaluation {
    std::int32_t step = 0;  // as of Op::step
    double loss = 0;
  };
  struct LaneTotal {
    std::int64_t commands = 0, bytes = 0;  // that finished; bytes of copies
  };

  // As of StepFollower. The scenario must outlive this object. All memory that goes by the number of steps is taken at
  // once, so that a run that begins with enough of it ends with enough.
  RunTotals(std::vector<const Graph*> graphs, const Scenario& scenario, std::optional<LossScaleState> before);

  void append(const EventBatch& batch) override;
  void append(std::span<const Command> commands) override;

  // That are complete, in order.
  std::span<const StepTotal> steps() const { return {steps_.data(), complete_}; }
  const std::vector<Evaluation>& evaluations() const { return evaluations_; }
  const SkippedSteps& skipped() const { return skipped_; }
  const std::map<std::pair<Rank, LaneIndex>, LaneTotal>& lanes() const { return lanes_; }
  std::int64_t commands() const { return commands_; }  // Run and Copy
  std::int64_t save_ns() const { return save_ns_; }
  std::int64_t makespan_ns() const { return makespan_ns_; }

 private:
  struct Open {
    LaneIndex lane;
    std::int64_t bytes = 0;
    bool saves = false;
  };
  void end_step(std::int32_t step, const StepFigures& figures);

  std::vector<const Graph*> graphs_;
  StepFollower follower_;
  SkippedSteps skipped_;
  std::vector<StepTotal> steps_;
  std::size_t complete_ = 0;
  std::vector<Evaluation> evaluations_;
  std::map<std::pair<Rank, LaneIndex>, LaneTotal> lanes_;
  std::vector<std::unordered_map<CommandId, Open>> open_;  // by rank: commands under way
  std::int64_t commands_ = 0, save_ns_ = 0, makespan_ns_ = 0;
};

}  // namespace tandem
