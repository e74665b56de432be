#include "analysis/skipped_steps.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/formats/loss_scale.hpp"

namespace tandem {
SkippedSteps::SkippedSteps(const Scenario& scenario, std::optional<LossScaleState> before)
    : interval_(scenario.optimizer.loss_scale_interval), scale_(scales_loss(scenario) ? before : std::nullopt) {}

bool SkippedSteps::take(std::optional<double> norm) {
  ++steps_;
  const bool finite = !norm || std::isfinite(*norm);
  in_a_row_ = finite ? 0 : in_a_row_ + 1;
  if (!finite) ++skipped_;
  if (scale_ && norm) {
    auto scale = static_cast<float>(scale_->scale);
    follow_gradients(finite, interval_, scale, scale_->good_steps);
    scale_->scale = scale;
  }
  return !finite;
}

std::optional<double> SkippedSteps::loss_scale() const { return scale_ ? std::optional(scale_->scale) : std::nullopt; }

std::string advice_on_skipped(const Scenario& scenario, std::optional<double> loss_scale) {
  if (!scales_loss(scenario))
    return "the gradients are not finite: lower optimizer.learning_rate, or go back to a checkpoint from before";
  constexpr double kLeastScale = 1;
  if (loss_scale && *loss_scale <= kLeastScale)
    return "even a loss scale of 1 overflows: lower optimizer.learning_rate, or train in bf16 or fp32";
  const std::string too_high =
      "the loss scale is too high" + (loss_scale ? fmt::format(" (it has fallen to {:g})", *loss_scale) : "");
  if (scenario.first_step > 0)
    return too_high +
           ": each skipped step halves it, so go on for more steps, or start anew with a lower "
           "optimizer.initial_loss_scale";
  constexpr double kDefaultScale = 65536;
  const bool above_default = scenario.optimizer.initial_loss_scale > kDefaultScale;
  return too_high + ": give a lower optimizer.initial_loss_scale" + (above_default ? " (65536 by default)" : "") +
         ", or train in bf16 or fp32";
}

}  // namespace tandem
