// Steps whose sizes differ: which sizes a step has, by a number, and the plan that goes with them. Must not know why.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "core/base/check.hpp"
#include "core/step/plan.hpp"

namespace tandem {

// Plans have the same stages with the same buckets: other batches, activations and works alone.
struct StepSizes {
  std::function<std::int64_t(std::int64_t training_step)> of_step;
  std::function<TrainingPlan(std::int64_t sizes)> plan_of;  // asked once for each of the sizes
  // Of batches of held-out data; null: those of the step before.
  std::function<std::int64_t()> of_evaluation = nullptr;
};

// Of steps that are all alike. The plan is given away: beside a rank's own one, the whole network's would stay.
inline StepSizes one_size(TrainingPlan plan) {
  auto only = std::make_shared<TrainingPlan>(std::move(plan));
  return {[](std::int64_t) { return 0; },
          [only](std::int64_t) {
            CHECK(!only->stages.empty(), "the only plan was asked for twice", only->family);
            return std::move(*only);
          }};
}

}  // namespace tandem
