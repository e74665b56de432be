// Steps whose sizes differ: which sizes a step has, by a number, and the plan that goes with them. Must not know why.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "core/step/plan.hpp"

namespace tandem {

// All pure. Plans have the same stages with the same buckets: other batches, activations and works alone.
struct StepSizes {
  std::function<std::int64_t(std::int64_t training_step)> of_step;
  std::function<TrainingPlan(std::int64_t sizes)> plan_of;
  // Of batches of held-out data; null: those of the step before.
  std::function<std::int64_t()> of_evaluation = nullptr;
};

// Of steps that are all alike.
inline StepSizes one_size(TrainingPlan plan) {
  return {[](std::int64_t) { return 0; }, [only = std::move(plan)](std::int64_t) { return only; }};
}

}  // namespace tandem
