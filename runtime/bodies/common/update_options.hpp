// What an update is given in an op's training step. Must not know LibTorch or operands.
#pragma once

#include "core/scenario/schedule.hpp"
#include "core/transforms/servers/arrivals.hpp"
#include "runtime/executors/body.hpp"
#include "runtime/optimizer/update.hpp"
#include "runtime/optimizer/update_control.hpp"

namespace tandem {

// Of the update that a call is a part of. UpdateStep counts steps from 1. An asynchronous server makes one of each
// worker's gradient (core/transforms/servers/servers.cpp).
inline std::int64_t update_number(const BodyCall& call) {
  if (staleness_bound(call.scenario) == 0) return call.step() + 1;
  return call.step() * call.scenario.workload.devices + call.op.micro_batch + 1;
}

// By rate: that of the step.
inline UpdateOptions update_options(const OptimizerOptions& o, double rate) {
  const Rule rule = o.name == "lion"  ? Rule::Lion
                    : o.name != "sgd" ? Rule::Adam
                    : o.momentum == 0 ? Rule::Sgd
                                      : Rule::Momentum;
  return {rate, o.beta1,   o.beta2, o.epsilon, o.weight_decay, /*decoupled=*/o.name == "adamw" || o.name == "lion",
          rule, o.momentum};
}

inline UpdateOptions update_options(const BodyCall& call) {
  return update_options(call.scenario.optimizer, learning_rate(call.scenario, call.op.step));
}

// What a control goes by. A rule that does not correct its moments for having begun at zero has no powers of betas.
inline UpdateRules update_rules(const OptimizerOptions& o, const UpdateOptions& options, const UpdateStep& step) {
  const bool corrects = options.rule == Rule::Adam;
  return {o.clip_norm,           options.learning_rate,  corrects ? o.beta1 : 0, corrects ? o.beta2 : 0,
          o.loss_scale_interval, step.v_root_correction, step.negative_step_size};
}

}  // namespace tandem
