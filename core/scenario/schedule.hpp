// What the number of a training step decides: the learning rate of its update, whether an evaluation follows, and
// whether its loss is scaled. Pure functions of options and numbers, which graphs, bodies, the reference and reports
// share. Must not know any of them.
#pragma once

#include <cstdint>

#include "core/scenario/scenario.hpp"

namespace tandem {

// The number, from 0 over the whole training, of step `step` of this run. The one place that tells the two apart.
inline std::int32_t training_step(const Scenario& scenario, std::int32_t step) { return scenario.first_step + step; }

// Whether losses are multiplied by a scale, which changes with the gradients that are found.
inline bool scales_loss(const Scenario& scenario) {
  return scenario.workload.precision == DType::F16 && scenario.optimizer.loss_scaling;
}

// The learning rate of training step `step` of `steps`, in double arithmetic. With w = warmup_steps, d = decay_steps
// (`steps` if that is 0), r = learning_rate, f = final_learning_rate and p = (step - w) / (d - w):
//   step < w   r * (step + 1) / w
//   then       constant  r
//              linear    r + (f - r) * p
//              cosine    r + (f - r) * (1 - cos(pi * p)) / 2
//   step >= d  f, unless constant
double learning_rate(const OptimizerOptions& options, std::int64_t step, std::int64_t steps);
// Of step `step` of a scenario's run.
double learning_rate(const Scenario& scenario, std::int32_t step);

// Whether an evaluation follows training step `step` of `steps`: after every `every` steps, and after the last.
constexpr bool evaluates_after(const ValidationOptions& options, std::int64_t step, std::int64_t steps) {
  return options.every > 0 && ((step + 1) % options.every == 0 || step + 1 == steps);
}

}  // namespace tandem
