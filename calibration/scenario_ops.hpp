// The ops of a scenario, timed in place: its own steps run on the machine, each op by its events, with launches and
// neighbours as they are in a step. Must not know flags or files.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "adapt/op_learner.hpp"
#include "core/scenario/scenario.hpp"
#include "runtime/executors/body.hpp"
#include "runtime/executors/device.hpp"
#include "runtime/torch_setup.hpp"

namespace tandem {

struct ScenarioOpsOptions {
  std::shared_ptr<Device> device;  // null: the CPU stands in
  BodyLibrary (*library)() = &torch_library;
  std::string scratch_folder;
  double seconds = 5;    // of steps of one scenario, about; what comes before and after is not counted
  double error = 0.005;  // enough is known of an op once its median's standard error is no more
  std::string source;    // of the rows
  std::function<void(const std::string&)> tell;  // a line for people; may be empty
};

struct ScenarioOps {
  LearntOps learnt;
  std::map<OpKey, std::int64_t> ops;  // of the scenario's own steps, with how often each ran in them
  // Those that were not timed: in parts, beside others on the CPU, or on fewer cores than the machine has.
  std::vector<OpKey> missing() const;
};

// Runs the scenario's steps under `resident`, with fewer blocks where all do not fit: the ops are the same. Then, where
// its own policy has ops that this lacks, under that. Throws DoesNotFit where neither fits, and as Training does.
ScenarioOps time_scenario_ops(const Scenario& scenario, const ScenarioOpsOptions& options);

}  // namespace tandem
