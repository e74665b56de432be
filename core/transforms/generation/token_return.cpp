#include "core/transforms/generation/token_return.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/scenario/ranks.hpp"

namespace tandem {
namespace {

StageSpec transfer_stage(TrainingPlan& plan, const Scenario& scenario, Rank from, Rank to, bool receives) {
  const RankGroup group = transfer_group(scenario, from, to, {});
  const std::int64_t bytes = scenario.workload.batch * size_of(DType::I64);
  StageSpec stage;
  stage.name = receives ? "tokens.received" : "tokens.sent";
  stage.backward_reads_parameter = false;
  TransferSpec transfer;
  transfer.receives = receives, transfer.forward = transfer.backward = group;
  stage.transfer = std::make_shared<const TransferSpec>(std::move(transfer));
  const bool leaves_host = is_other_host(scenario, from, to);
  stage.forward = plan.add(
      {{receives ? "receive" : "send", DType::I64, {bytes, std::int64_t{leaves_host}}, {memory_kernel(bytes)}}, 0});
  if (receives) stage.outputs.push_back({.type = DType::I64, .bytes = bytes, .gradient = false});
  return stage;
}

}  // namespace

TokenReturn add_token_return(TrainingPlan& plan, const Scenario& scenario, Rank rank) {
  const RankGroup stages = pipeline_group(scenario, rank);
  TokenReturn added;
  if (stages.members.size() < 2) return added;
  const Rank first = stages.members.front(), last = stages.members.back();
  if (rank != first && rank != last) return added;
  const auto index = static_cast<std::int32_t>(plan.stages.size());
  StageSpec stage = transfer_stage(plan, scenario, last, first, rank == first);
  if (rank == first) {
    added.receives = index;
  } else {
    const auto chooses =
        std::find_if(plan.stages.begin(), plan.stages.end(), [](const StageSpec& s) { return s.chooses(); });
    CHECK(chooses != plan.stages.end(), "the last stage chooses no token", plan.family);
    stage.inputs.push_back(
        {.from = PortSpec::From::Stage, .index = static_cast<std::int32_t>(chooses - plan.stages.begin())});
    added.sends = index;
  }
  plan.stages.push_back(std::move(stage));
  return added;
}

}  // namespace tandem
