// What a training reads of its samples, step by step: how many items of each modality, which of them a cache has, and
// what of a network is kept for the next time. The same in a simulation and in a real run. Must not know files'
// contents or worlds.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "core/model/network.hpp"
#include "core/samples/samples.hpp"
#include "core/scenario/scenario.hpp"
#include "core/step/sizes.hpp"
#include "core/workloads/workload.hpp"

namespace tandem {

// The network tells samples that lack a modality from others.
bool takes_a_mix(const WorkloadEntry& family);
// Items of a modality that a network encodes; 0: it reads none.
std::int64_t encoded_items(const Network& network, Modality modality);
// Rows of aligned features that it makes of all of them; 0: none.
std::int64_t aligned_rows(const Network& network, Modality modality);
// Of the sequence of a text that has such an item: where pictures and sounds stand among the tokens.
std::int64_t tokens_of_item(const Network& network, Modality modality);

// What a frozen part of a network makes of a modality's items: an output of a module, [items * rows, ...].
struct FeatureSource {
  std::string module;
  std::int32_t output = 0;
  std::int64_t item_bytes = 0;
};

class SamplePlan {
 public:
  // Of a rank; `or_cpu` as of network_plan(). Throws ConfigError for a manifest that cannot be read or whose samples
  // lack what the network reads, and for features of what is trained.
  SamplePlan(const WorkloadEntry& family, const Scenario& scenario, Rank rank, bool or_cpu = false);

  const Samples& samples() const { return *samples_; }
  bool mixes() const { return mixes_; }
  // Null: none are kept.
  const KeptItems* features(Modality modality) const { return find(features_, modality); }
  const KeptItems* decoded(Modality modality) const { return find(decoded_, modality); }
  const FeatureSource& source(Modality modality) const { return sources_.at(modality); }
  // WorkloadOptions::items of the key's step, or of held-out batches, which no cache has; the same of all its
  // micro-batches and ranks.
  std::map<std::string, std::int64_t> items(const MicroBatchKey& key) const;
  // The workload with such counts, and its network.
  WorkloadOptions workload(const std::map<std::string, std::int64_t>& items) const;
  Network network(const std::map<std::string, std::int64_t>& items) const;

 private:
  friend StepSizes sizes_of(std::shared_ptr<const SamplePlan> plan);
  using KeptByModality = std::map<Modality, std::unique_ptr<KeptItems>>;
  static const KeptItems* find(const KeptByModality& kept, Modality modality) {
    const auto found = kept.find(modality);
    return found == kept.end() ? nullptr : found->second.get();
  }
  std::map<std::string, std::int64_t> counted(std::map<std::string, std::int64_t> items) const;
  std::int64_t spare(std::string_view name) const;
  std::int64_t most_among_tokens(const Network& network) const;
  void require_room(const Network& network) const;
  void find_sources();
  void keep_features(Rank rank);
  void keep_decoded(Rank rank);
  TrainingPlan plan_of(const std::map<std::string, std::int64_t>& items) const;
  void add_features(const Network& network, BatchSpec& batch) const;

  const WorkloadEntry& family_;
  Scenario scenario_;
  bool or_cpu_;
  bool mixes_;                     // the family's network goes by items
  std::set<std::string> counted_;  // which of them
  bool spares_ = false;            // it reads an item more, which is nobody's
  std::shared_ptr<const Samples> samples_;
  std::map<Modality, FeatureSource> sources_;
  KeptByModality features_, decoded_;
};

// Null: the network's batch has no tensor of that name.
const BatchTensor* find_tensor(const Network& network, const std::string& name);

// Whether a scenario's steps go by samples.
bool goes_by_samples(const Scenario& scenario);
StepSizes sizes_of(std::shared_ptr<const SamplePlan> plan);

}  // namespace tandem
