#include "core/scenario/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/base/check.hpp"

namespace tandem {

TruthTimes Truth::least() const {
  TruthTimes out = *this;
  for (const Drift& d : drift) {
    out.copy_time *= std::min(1.0, d.times.copy_time);
    out.compute_time *= std::min(1.0, d.times.compute_time);
    out.optimizer_time *= std::min(1.0, d.times.optimizer_time);
    out.disk_time *= std::min(1.0, d.times.disk_time);
  }
  return out;
}

double learning_rate(const OptimizerOptions& o, std::int64_t step, std::int64_t steps) {
  CHECK(step >= 0 && o.warmup_steps >= 0 && o.decay_steps >= 0, step, o.warmup_steps, o.decay_steps);
  if (step < o.warmup_steps)
    return o.learning_rate * static_cast<double>(step + 1) / static_cast<double>(o.warmup_steps);
  if (o.schedule == "constant") return o.learning_rate;
  const std::int64_t end = o.decay_steps > 0 ? o.decay_steps : steps;
  if (step >= end) return o.final_learning_rate;
  const double progress = static_cast<double>(step - o.warmup_steps) / static_cast<double>(end - o.warmup_steps);
  CHECK(progress >= 0 && progress < 1, progress, step, o.warmup_steps, end);
  const double fallen = o.schedule == "linear" ? progress : (1 - std::cos(std::numbers::pi * progress)) / 2;
  return o.learning_rate + (o.final_learning_rate - o.learning_rate) * fallen;
}

double learning_rate(const Scenario& scenario, std::int32_t step) {
  return learning_rate(scenario.optimizer, training_step(scenario, step), scenario.steps);
}

}  // namespace tandem
