// Adam's moments by name, for transforms that send one of them. Must not know what is sent.
#pragma once

#include <string_view>

#include "core/step/context.hpp"

namespace tandem {

// Of a plan whose states hold both as one and the master besides: each has a state of its own.
void name_moments(TrainingPlan& plan);
// A stage's state of that name, which it has.
TensorId state_named(const StepContext& context, std::size_t index, std::string_view name);
// What an update writes beside moments, which come ready: the parameter, and what is left of its masters, in place.
void write_by_moments(StepContext& context, Graph& graph, Op& op, std::size_t index);

}  // namespace tandem
