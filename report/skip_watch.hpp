// Follows a run while it goes on and says when many training steps in a row were skipped: what a person wants to know
// before the last one. Watches what crosses the seam of one rank; must not know worlds.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>

#include "analysis/skipped_steps.hpp"
#include "core/graph/graph.hpp"
#include "core/scheduler/event_log.hpp"

namespace tandem {

class SkipWatch final : public EventLog {
 public:
  // Forwards to `inner`. `tell` gets a line when kSkippedInARow steps in a row were skipped, and each time that these
  // have become twice as many. `before`: as of RunRecord::loss_scale_before. All must outlive this object; the graph
  // may still grow.
  SkipWatch(EventLog& inner, const Scenario& scenario, const Graph& graph, std::optional<LossScaleState> before,
            std::function<void(const std::string&)> tell);
  void append(const EventBatch& batch) override;
  void append(std::span<const Command> commands) override;

  const SkippedSteps& steps() const { return steps_; }

 private:
  void take(double norm);

  EventLog* inner_;
  const Scenario& scenario_;
  const Graph* graph_;
  SkippedSteps steps_;
  std::function<void(const std::string&)> tell_;
  std::set<CommandId> norms_;  // that are under way
  std::int64_t told_at_ = kSkippedInARow;
};

}  // namespace tandem
