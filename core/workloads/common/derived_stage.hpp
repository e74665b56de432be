// A stage of a plan from a module: its passes are derived, and its operands come in the plan's order. Must not know
// what the module computes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/model/passes.hpp"
#include "core/workloads/common/plan.hpp"

namespace tandem {

// What a port of the module reads.
enum class PortSource : std::uint8_t { StageBefore, Inputs, Targets };

struct DerivedStage {
  std::shared_ptr<const Module> module;
  std::vector<PortSource> ports;    // by input port
  std::string body;                 // of works: "mlp.layer", to which the pass is added
  std::vector<std::int64_t> sizes;  // of works: what tells modules of one body apart
  std::int64_t micro_batches = 1;
  bool recomputable = false;
};
StageSpec derived_stage(TrainingPlan& plan, const DerivedStage& stage, const RunsOn& where);

}  // namespace tandem
