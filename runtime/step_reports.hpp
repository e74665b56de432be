// What each training step came to, told as it ends: for whoever watches a run while it goes on. Must not know who that
// is.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "analysis/step_follower.hpp"
#include "core/scenario/scenario.hpp"

namespace tandem {

struct StepReport {
  std::int32_t step = 0;                                       // training steps done by then, from the training's start
  std::optional<double> loss, validation_loss, gradient_norm;  // as of StepFigures
  double learning_rate = 0;
  double step_time_s = 0;                     // since the step before ended; the first: since the run began
  double tokens_per_s = 0;                    // 0: the workload has no tokens
  std::map<std::string, std::int64_t> bytes;  // that copies brought since the last report, by kind of lane: "h2d"
};

class StepReports final : public EventLog {
 public:
  using Told = std::function<void(StepReport)>;
  // The graph may still grow; it and the scenario must outlive this object.
  StepReports(const Graph& graph, const Scenario& scenario, Told told);
  void append(const EventBatch& batch) override;
  void append(std::span<const Command> commands) override;

 private:
  void end_step(std::int32_t step, const StepFigures& figures);

  const Scenario& scenario_;
  StepFollower follower_;
  Told told_;
  struct Copy {
    Engine engine = Engine::H2D;
    std::int64_t bytes = 0;
  };
  std::unordered_map<CommandId, Copy> copies_;  // under way
  std::map<std::string, std::int64_t> bytes_;
  std::int64_t begin_ns_ = 0;
};

}  // namespace tandem
