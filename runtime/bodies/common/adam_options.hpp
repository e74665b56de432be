// What Adam is given in an op's training step. Must not know LibTorch or operands.
#pragma once

#include "core/scenario/schedule.hpp"
#include "runtime/executors/body.hpp"
#include "runtime/optimizer/adam.hpp"

namespace tandem {

// Of the update that a call is a part of. AdamStep counts steps from 1.
inline std::int64_t adam_step_number(const BodyCall& call) { return call.step() + 1; }

inline AdamOptions adam_options(const BodyCall& call, bool decoupled) {
  const OptimizerOptions& o = call.scenario.optimizer;
  return {learning_rate(call.scenario, call.op.step), o.beta1, o.beta2, o.epsilon, o.weight_decay, decoupled};
}

}  // namespace tandem
