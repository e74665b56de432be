#include "core/workloads/workload.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "core/base/errors.hpp"
#include "core/model/families/common/modalities.hpp"
#include "core/scenario/ranks.hpp"
#include "core/step/inputs.hpp"
#include "core/step/network_plan.hpp"
#include "core/step/training_source.hpp"
#include "core/transforms/common/entry.hpp"
#include "core/transforms/generation/generation_keys.hpp"
#include "core/transforms/generation/generation_source.hpp"
#include "core/workloads/common/options.hpp"
#include "core/workloads/sample_plan.hpp"

namespace tandem {

namespace {

// What is left open is 64 elements, 128 bytes, where it pays: products in 16 bits on a GPU. (On an H100 fp32 products
// along odd sizes take as long as others.) Numbers that have no gradient stay zero in every update but one that divides
// by a root of zero.
void complete_padding(const WorkloadEntry& family, const Scenario& scenario, KeyValues& keys) {
  constexpr std::int64_t kGpuMultiple = 64;
  const bool divides_by_zero = scenario.optimizer.epsilon == 0;
  const auto is_it = [](const FamilyKey& key) { return key.name == kVocabularyMultiple; };
  if (std::none_of(family.keys->own.begin(), family.keys->own.end(), is_it)) return;
  const bool pays = scenario.machine.gpu && size_of(scenario.workload.precision) == 2;
  keys.fall_back(kVocabularyMultiple, pays && !divides_by_zero ? kGpuMultiple : std::int64_t{1});
  if (divides_by_zero && keys.integer(kVocabularyMultiple) > 1)
    throw ConfigError("workload." + std::string(kVocabularyMultiple) +
                      ": rows without gradients are not finite after an update whose optimizer.epsilon is 0; allowed: "
                      "1, or an epsilon above 0");
}

// With all keys that the family reads. A scenario that was made in code may lack some.
WorkloadOptions complete_for(const WorkloadEntry& family, const Scenario& scenario) {
  WorkloadOptions options = scenario.workload;
  options.keys = family.keys->completed(std::move(options.keys));
  for (const FamilyKey& key : family.keys->own)
    if (key.required && !options.keys.has(key.name))
      throw ConfigError("workload." + key.name + ": is missing; " + options.family + " needs it");
  complete_padding(family, scenario, options.keys);
  return options;
}

// Of what generates, nothing is trained.
Network frozen(Network network) {
  std::map<std::shared_ptr<const Module>, std::shared_ptr<const Module>> changed;
  for (NetworkModule& m : network.modules) {
    std::shared_ptr<const Module>& own = changed[m.module];
    if (own == nullptr) own = with_trained(*m.module, std::vector<bool>(m.module->weights.size(), false));
    m.module = own;
  }
  return network;
}

// The family's network as it is trained, or as it was.
Network trained_network(const WorkloadEntry& family, const WorkloadOptions& complete) {
  Network network = family.network(complete);
  network = transformed(generates(complete) ? frozen(std::move(network)) : std::move(network), complete);
  require_frozen_where_cached(network, complete);
  return network;
}

}  // namespace

WorkloadOptions completed(WorkloadOptions options) {
  const WorkloadEntry* family = find_workload(options.family);
  if (family != nullptr) options.keys = family->keys->completed(std::move(options.keys));
  return options;
}

std::unique_ptr<StepSource> WorkloadEntry::make(const Scenario& scenario, const Rewrites& rewrites, Rank rank) const {
  Scenario complete = scenario;
  complete.workload = complete_for(*this, scenario);
  if (rank == kNone) rank = scenario.parallel.rank;
  if (source != nullptr) return source(complete, rewrites, rank);
  if (generates(complete)) {
    WorkloadOptions of_samples = complete.workload;
    if (goes_by_samples(complete)) {
      const SamplePlan samples(*this, complete, 0);
      of_samples = samples.workload(samples.items({}));
    }
    const auto of_tokens = [this, workload = of_samples](std::int64_t tokens) {
      WorkloadOptions of_step = workload;
      if (!denoises(of_step))
        set_text_length(of_step.keys, tokens);
      else if (GenerationSizes(of_step).guidance > 0)
        of_step.batch *= 2;
      return network(of_step);
    };
    return make_generation(complete, all_rewrites(complete, rewrites), of_tokens, rank);
  }
  require_training_options(complete);
  const Rewrites all = all_rewrites(complete, rewrites);
  const bool or_cpu = find_rewrite(rewrites, "split_batch") != nullptr;
  if (goes_by_samples(complete)) {
    auto plan = std::make_shared<const SamplePlan>(*this, complete, place_of(complete, rank).data, or_cpu);
    return std::make_unique<TrainingSource>(of_rank(sizes_of(std::move(plan)), complete, all, rank), complete, all,
                                            rank);
  }
  const Network whole = trained_network(*this, complete.workload);
  TrainingPlan plan = network_plan(whole, complete, or_cpu);
  if (complete.pipeline.given) add_inputs(whole, complete, {}, plan.batch);
  return std::make_unique<TrainingSource>(of_rank(one_size(std::move(plan)), complete, all, rank), complete, all, rank);
}

Network network_of(const Scenario& scenario) {
  const WorkloadEntry* family = find_workload(scenario.workload.family);
  if (family == nullptr || family->network == nullptr)
    throw ConfigError("workload.family: \"" + scenario.workload.family + "\" is no network that is trained");
  const WorkloadOptions complete = complete_for(*family, scenario);
  return trained_network(*family, complete);
}

}  // namespace tandem
