#include "core/transforms/generation/generation_plan.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/formats/weight_blocks.hpp"
#include "core/step/network_plan.hpp"
#include "core/transforms/common/entry.hpp"
#include "core/transforms/generation/attention_apart.hpp"

namespace tandem {
namespace {

bool is_attention(const StageSpec& stage) {
  const auto is_page = [](const OutputSpec& output) { return output.role == Role::KvCache; };
  return !stage.carried.empty() || std::any_of(stage.outputs.begin(), stage.outputs.end(), is_page);
}

bool reads_tokens(const StageSpec& stage) {
  return std::any_of(stage.inputs.begin(), stage.inputs.end(),
                     [](const PortSpec& port) { return port.from == PortSpec::From::Batch && port.index == 0; });
}

// As numbers. Codes of a bucket whose fields end within a block are more numbers than others know of.
void require_whole_blocks(const Scenario& scenario, const StageSpec& stage) {
  if (scenario.workload.compress.weights == 0) return;
  const std::int64_t block = weight_block(scenario.workload.compress.weights).elements;
  for (const Field& field : stage.transfer->layout->fields)
    if (field.padded_elements() % block != 0)
      throw ConfigError("workload.compress: " + stage.name + " has " + std::to_string(field.elements()) +
                        " numbers, which two stages of the pipeline share, and blocks of codes have " +
                        std::to_string(block) + "; allowed: compress.modules without it, or parallel.pipeline: 1");
}

// Weights that two stages of a pipeline share cross once in a run, in the first step.
void keep_received(StageSpec& stage) {
  TransferSpec kept = *stage.transfer;
  kept.receives = false;
  stage.transfer = std::make_shared<const TransferSpec>(std::move(kept));
}

}  // namespace

GenerationPlans::GenerationPlans(const Scenario& scenario, const Rewrites& rewrites, NetworkOfTokens network, Rank rank)
    : scenario_(scenario),
      network_(std::move(network)),
      sizes_(scenario.workload),
      places_(scenario.workload.keys.integer_or("sequence", sizes_.prompt + sizes_.new_tokens)),
      windows_(attention_windows(network_(places_))),
      rank_(rank),
      of_rank_(of_rank({nullptr, [this](std::int64_t position) { return of_all_ranks(position); }}, scenario_, rewrites,
                       rank)) {}

GeneratingStep GenerationPlans::step_at(std::int64_t position) const {
  return {position == 0 ? sizes_.prompt : 1,
          position,
          sizes_.prompt,
          sizes_.page,
          places_,
          sizes_.cache_bits,
          sizes_.eager_codes,
          sizes_.temperature,
          sizes_.top_k};
}

TrainingPlan GenerationPlans::of_all_ranks(std::int64_t position) const {
  const GeneratingStep step = step_at(position);
  Network generates = generating_network(network_(step.tokens), step, windows_, most_pages());
  const Network network = with_attention_apart(transformed(std::move(generates), scenario_.workload));
  TrainingPlan plan = network_plan(network, scenario_);
  for (std::size_t i = 0; step.begins_page() && i < network.modules.size(); ++i)
    if (attends_to_pages(*network.modules[i].module)) {
      OutputSpec& page = plan.stages[i].outputs.at(1);
      page.persistent = true, page.role = Role::KvCache;
    }
  plan.batch.name = "prompt";
  plan.stages.back().outputs.front().persistent = true;
  return plan;
}

GenerationPlan GenerationPlans::at(std::int64_t position) {
  GenerationPlan own;
  own.plan = of_rank_.plan_of(position);
  std::vector<StageSpec>& stages = own.plan.stages;
  for (StageSpec& stage : stages) {
    if (stage.transfer == nullptr || !stage.transfer->of_bucket) continue;
    require_whole_blocks(scenario_, stage);
    if (position > 0) keep_received(stage);
  }
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (is_attention(stages[i])) own.attentions.push_back(i);
    if (stages[i].chooses()) own.chooses = static_cast<std::int32_t>(i);
    own.reads_tokens = own.reads_tokens || reads_tokens(stages[i]);
  }
  own.tokens = add_token_return(own.plan, scenario_, rank_);
  return own;
}

}  // namespace tandem
