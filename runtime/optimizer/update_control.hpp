// What all gradients of a training step decide for its update, on the CPU or a GPU to the same bits: by how much each
// is scaled (clipping, the inverse of fp16's loss scale), or that the step is skipped because one is not finite. With
// it, fp16's loss scale. Must not know buckets or ops.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/formats/loss_scale.hpp"
#include "core/formats/sums.hpp"
#include "runtime/optimizer/rules/update_formula.hpp"

namespace tandem {

struct UpdateControl {
  double gradient_scale;                        // 0: the step is skipped
  float v_root_correction, negative_step_size;  // UpdateStep's
};
static_assert(sizeof(UpdateControl) == kUpdateControlBytes);

// A skipped step is none for Adam's bias corrections: so the powers of beta that they are made of are kept here, a
// product a step. The scale goes by the rule of core/formats/loss_scale.hpp.
struct LossScale {
  double beta1_power, beta2_power;
  float scale;
  std::int32_t good_steps;  // since the scale last changed
};
static_assert(sizeof(LossScale) == kLossScaleBytes && offsetof(LossScale, scale) == kLossScaleOffset);

inline LossScale initial_loss_scale(double scale) { return {1, 1, static_cast<float>(scale), 0}; }

struct UpdateRules {
  double clip_norm;  // 0: no clipping
  double learning_rate, beta1, beta2;
  std::int64_t interval;                        // of the loss scale
  float v_root_correction, negative_step_size;  // of the step, where no loss scale counts the steps
};

// min(1, clip / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_.
TANDEM_HOST_DEVICE inline double clip_factor(double norm, double clip_norm) {
  const double wanted = rounded::divide(clip_norm, rounded::add(norm, kClipEpsilon));
  return wanted < 1 ? wanted : 1;
}

TANDEM_HOST_DEVICE inline void follow_overflow(bool finite, const UpdateRules& rules, LossScale& state) {
  follow_gradients(finite, rules.interval, state.scale, state.good_steps);
  if (!finite) return;
  state.beta1_power = rounded::multiply(state.beta1_power, rules.beta1);
  state.beta2_power = rounded::multiply(state.beta2_power, rules.beta2);
}

// Returns the gradients' norm, before clipping and without the loss scale; not finite: the step is skipped. `state`:
// null without a loss scale.
TANDEM_HOST_DEVICE inline double control_update(const UpdateRules& rules, double sum_of_squares, LossScale* state,
                                                UpdateControl& control) {
  const double scale = state != nullptr ? static_cast<double>(state->scale) : 1;
  const double norm = rounded::divide(rounded::square_root(sum_of_squares), scale);
  const bool finite = rounded::subtract(norm, norm) == 0;
  const double factor = rules.clip_norm > 0 ? clip_factor(norm, rules.clip_norm) : 1;
  control.gradient_scale = finite ? rounded::divide(factor, scale) : 0;
  control.v_root_correction = rules.v_root_correction;
  control.negative_step_size = rules.negative_step_size;
  if (state == nullptr) return norm;
  follow_overflow(finite, rules, *state);
  const double m_correction = rounded::subtract(1.0, state->beta1_power);
  const double v_correction = rounded::subtract(1.0, state->beta2_power);
  control.v_root_correction = static_cast<float>(rounded::square_root(v_correction));
  control.negative_step_size = static_cast<float>(-rounded::divide(rules.learning_rate, m_correction));
  return norm;
}

// The step with what the control says of it.
TANDEM_HOST_DEVICE inline UpdateStep controlled(UpdateStep step, const UpdateControl& control) {
  step.gradient_scale = static_cast<float>(control.gradient_scale);
  step.v_root_correction = control.v_root_correction;
  step.negative_step_size = control.negative_step_size;
  return step;
}

}  // namespace tandem
