#include "core/transforms/generation/generation_plan.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/formats/weight_blocks.hpp"
#include "core/step/inputs.hpp"
#include "core/step/network_plan.hpp"
#include "core/transforms/common/entry.hpp"
#include "core/transforms/generation/attention_apart.hpp"
#include "core/transforms/generation/denoising_network.hpp"
#include "core/transforms/generation/recomputing_network.hpp"
#include "core/transforms/generation/text_of_network.hpp"

namespace tandem {
namespace {

bool is_attention(const StageSpec& stage) {
  const auto is_page = [](const OutputSpec& output) { return output.role == Role::KvCache; };
  return !stage.once && (!stage.carried.empty() || std::any_of(stage.outputs.begin(), stage.outputs.end(), is_page));
}

void keep_page(OutputSpec& page) { page.persistent = true, page.role = Role::KvCache; }

// What is made once and read by each later token stays, as keys and values do.
void keep_what_later_tokens_read(const Network& later, TrainingPlan& plan) {
  const std::vector<bool> once = made_once(later);
  for (std::size_t i = 0; i < once.size(); ++i)
    for (const Source& source : later.modules[i].inputs)
      if (const auto from = static_cast<std::size_t>(source.index);
          !once[i] && source.from == Source::From::Output && once[from])
        keep_page(plan.stages[from].outputs[static_cast<std::size_t>(source.place)]);
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

void require_recomputing_options(const Network& whole, const Scenario& scenario) {
  const auto refuse = [](const std::string& key, const std::string& problem, const std::string& allowed) {
    throw ConfigError(key + ": " + problem + "; allowed: " + allowed);
  };
  const WorkloadOptions& w = scenario.workload;
  if (scenario.parallel.pipeline > 1 || w.tensor > 1)
    refuse("parallel", "what was imported generates on one rank so far", "none with generate");
  if (w.generate.has("cache_bits"))
    refuse("generate.cache_bits", "what was imported generates without a cache of keys and values", "none");
  if (!GenerationSizes(w).padding().empty())
    refuse("generate.prompt", needs_one_length(whole), "one number, or as many of each");
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
      places_(scenario.workload.keys.integer_or(text_length_key(scenario.workload.keys),
                                                sizes_.prompt + sizes_.new_tokens)),
      windows_(look_at(network_(places_))),
      rank_(rank),
      of_rank_(of_rank({nullptr, [this](std::int64_t position) { return of_all_ranks(position); }}, scenario_, rewrites,
                       rank)) {}

std::vector<std::int64_t> GenerationPlans::look_at(const Network& whole) {
  recomputes_ = recomputes_texts(whole);
  if (recomputes_) require_recomputing_options(whole, scenario_);
  return attention_windows(whole);
}

GeneratingStep GenerationPlans::step_at(std::int64_t position) const {
  const std::int64_t later = recomputes_ ? position + 1 : 1;
  return {position == 0 ? sizes_.prompt : later,
          position,
          sizes_.prompt,
          recomputes_ ? 1 : sizes_.page,  // tensors of each step have sizes of their own
          places_,
          sizes_.cache_bits,
          sizes_.eager_codes,
          sizes_.temperature,
          sizes_.top_k,
          sizes_.padding()};
}

bool GenerationPlans::reads_text(const StageSpec& stage) const {
  return std::any_of(stage.inputs.begin(), stage.inputs.end(), [this](const PortSpec& port) {
    return port.from == PortSpec::From::Batch && port.index == text_;
  });
}

Network GenerationPlans::network_at(std::int64_t position) {
  const GeneratingStep step = step_at(position);
  const Network whole = network_(step.tokens);
  GeneratingNetwork made = sizes_.denoises
                               ? denoising_network(whole, ddim_step(sizes_.new_tokens, position), sizes_.guidance)
                           : recomputes_ ? recomputing_network(whole, step, scenario_.workload.batch)
                                         : generating_network(whole, step, windows_, most_pages());
  text_ = made.text, first_page_ = static_cast<std::int32_t>(made.network.batch.size());
  Network network = transformed(std::move(made.network), scenario_.workload);
  return recomputes_ ? network : with_attention_apart(network);
}

TrainingPlan GenerationPlans::of_all_ranks(std::int64_t position) {
  const Network network = network_at(position);
  TrainingPlan plan = network_plan(network, scenario_);
  if (scenario_.pipeline.given) add_inputs(network, scenario_, {}, plan.batch);
  const std::vector<bool> once = made_once(network);
  for (std::size_t i = 0; i < once.size(); ++i) plan.stages[i].once = once[i];
  const bool encodes = std::find(once.begin(), once.end(), true) != once.end();
  if (encodes && scenario_.parallel.pipeline > 1)
    throw ConfigError("parallel.pipeline: " + network.family +
                      " has an encoder before its text, which is not built so far; allowed: 1");
  if (encodes && sizes_.new_tokens > 1)
    keep_what_later_tokens_read(position > 0 ? network : network_at(sizes_.prompt), plan);
  for (std::size_t i = 0; step_at(position).begins_page() && i < network.modules.size(); ++i)
    if (attends_to_pages(*network.modules[i].module)) keep_page(plan.stages[i].outputs.at(1));
  for (TensorSpec& tensor : plan.batch.tensors) tensor.persistent = sizes_.denoises || recomputes_;
  if (!sizes_.padding().empty()) plan.batch.tensors.at(static_cast<std::size_t>(text_) + 1).persistent = true;
  if (!sizes_.denoises) plan.batch.name = "prompt";
  plan.stages.back().outputs.back().persistent = true;
  return plan;
}

GenerationPlan GenerationPlans::at(std::int64_t position) {
  GenerationPlan own;
  own.plan = of_rank_.plan_of(position);
  std::vector<StageSpec>& stages = own.plan.stages;
  for (StageSpec& stage : stages) {
    if (stage.transfer == nullptr || !stage.transfer->of_bucket) continue;
    require_whole_blocks(scenario_, stage);
    stage.once = true;
    if (position > 0) keep_received(stage);
  }
  own.text = static_cast<std::size_t>(text_);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (is_attention(stages[i])) own.attentions.push_back(i);
    if (sizes_.denoises ? i + 1 == stages.size() : stages[i].chooses())
      own.chooses = static_cast<std::int32_t>(i), own.next_text = stages[i].outputs.size() - 1;
    own.reads_tokens = own.reads_tokens || reads_text(stages[i]);
  }
  own.tokens = add_token_return(own.plan, scenario_, rank_);
  return own;
}

}  // namespace tandem
