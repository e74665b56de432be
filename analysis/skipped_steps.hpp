// Which training steps were skipped because a gradient was not finite, and fp16's loss scale, followed step by step
// from the norms that updates found. Must not know formats or worlds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/scenario/scenario.hpp"
#include "core/scenario/schedule.hpp"

namespace tandem {

// Skipped steps in a row from which on people are told while the run goes on: where a scale begins too high, a few are
// how it falls.
inline constexpr std::int64_t kSkippedInARow = 10;

// fp16's loss scale between two training steps, and the steps since it last changed.
struct LossScaleState {
  double scale = 0;
  std::int32_t good_steps = 0;
};

class SkippedSteps {
 public:
  // `before`: what the run's first step finds; unknown where a resumed run is read back from its log.
  SkippedSteps(const Scenario& scenario, std::optional<LossScaleState> before);

  // The next training step is over. `norm`: of its gradients, where its update asked; not finite: it was skipped.
  // Returns whether it was skipped.
  bool take(std::optional<double> norm);

  std::int64_t steps() const { return steps_; }
  std::int64_t skipped() const { return skipped_; }
  std::int64_t in_a_row() const { return in_a_row_; }  // up to the last step that was taken
  // That the next step would be made with; none without loss scaling, or where it is unknown.
  std::optional<double> loss_scale() const;
  // More than half of the steps: then the run has not trained what it seems to have.
  bool most() const { return 2 * skipped_ > steps_; }

 private:
  std::int64_t interval_;
  std::optional<LossScaleState> scale_;
  std::int64_t steps_ = 0, skipped_ = 0, in_a_row_ = 0;
};

// What a run from the start begins with; none without loss scaling, and for a resumed run.
inline std::optional<LossScaleState> initial_loss_scale_state(const Scenario& scenario) {
  if (!scales_loss(scenario) || scenario.first_step > 0) return std::nullopt;
  return LossScaleState{static_cast<float>(scenario.optimizer.initial_loss_scale), 0};
}

// What to do about skipped steps, for people, in one clause. `loss_scale`: the scale now, if there is one.
std::string advice_on_skipped(const Scenario& scenario, std::optional<double> loss_scale);

}  // namespace tandem
