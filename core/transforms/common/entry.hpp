// A transform as it is registered by the last line of its file, and what a scenario and its policy ask for in all. Must
// not know which there are (CMake's generated table does).
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "core/graph/rewrite.hpp"
#include "core/model/network.hpp"
#include "core/scenario/family_keys.hpp"
#include "core/scenario/scenario.hpp"
#include "core/step/sizes.hpp"

namespace tandem {

struct TransformEntry {
  std::string_view name;
  std::string_view summary;
  std::string_view asked_by;  // keys of a scenario
  // What of it the scenario's own keys ask for, beside its policy's rewrites; null: nothing. Of a transform that only
  // policies ask for there is no such function.
  std::shared_ptr<const Rewrite> (*of_scenario)(const Scenario&, const Rewrites& of_policy);
  // Of one that changes the network before passes are derived. Throws ConfigError for keys that do not suit it.
  Network (*on_network)(Network, const WorkloadOptions&) = nullptr;
  // Of one that gives each rank a plan of its own: of a rank, the plan made of the whole network's, for each of the
  // sizes that steps have. Null: the scenario asks for nothing of it. Throws ConfigError for keys, or rewrites, that do
  // not suit it.
  std::function<TrainingPlan(TrainingPlan)> (*of_rank)(const Scenario&, const Rewrites&, Rank) = nullptr;
  // Keys of a scenario's `parallel` that it takes, in WorkloadOptions::parallel: with a fallback each. Null: none.
  const std::vector<FamilyKey>* keys = nullptr;
  bool network_last = false;  // it changes networks after all others
};

// All transforms in alphabetical order.
const std::vector<const TransformEntry*>& transforms();
const TransformEntry* find_transform(std::string_view name);
// The keys of all of them.
std::vector<FamilyKey> parallel_keys();

// What the scenario's keys make of the network that its family built. In alphabetical order, but for those that come
// last: adapters stand beside weights before it is said which are trained.
Network transformed(Network network, const WorkloadOptions& workload);

// The rank's own plans, of those of the whole network.
StepSizes of_rank(StepSizes whole, const Scenario& scenario, const Rewrites& rewrites, Rank rank);

// The policy's rewrites and the scenario's own, in the order in which they apply.
Rewrites all_rewrites(const Scenario& scenario, const Rewrites& of_policy);

}  // namespace tandem

// The last line of core/transforms/NAME.cpp, or NAME/NAME.cpp. OF_SCENARIO: see TransformEntry; nullptr: policies ask.
// At the end of each, what TransformEntry::keys is, where there are some.
#define TANDEM_TRANSFORM(NAME, OF_SCENARIO, SUMMARY, ASKED_BY, ...) \
  TANDEM_TRANSFORM_ENTRY(NAME, SUMMARY, ASKED_BY, OF_SCENARIO, nullptr, nullptr __VA_OPT__(, ) __VA_ARGS__)

// Of one that changes networks.
#define TANDEM_NETWORK_TRANSFORM(NAME, ON_NETWORK, SUMMARY, ASKED_BY, ...) \
  TANDEM_TRANSFORM_ENTRY(NAME, SUMMARY, ASKED_BY, nullptr, ON_NETWORK, nullptr __VA_OPT__(, ) __VA_ARGS__)

// Of one that divides plans among ranks.
#define TANDEM_RANK_TRANSFORM(NAME, OF_RANK, SUMMARY, ASKED_BY, ...) \
  TANDEM_TRANSFORM_ENTRY(NAME, SUMMARY, ASKED_BY, nullptr, nullptr, OF_RANK __VA_OPT__(, ) __VA_ARGS__)

// Of one that changes networks, and then their steps.
#define TANDEM_TRANSFORM_OF_BOTH(NAME, OF_SCENARIO, ON_NETWORK, SUMMARY, ASKED_BY, ...) \
  TANDEM_TRANSFORM_ENTRY(NAME, SUMMARY, ASKED_BY, OF_SCENARIO, ON_NETWORK, nullptr __VA_OPT__(, ) __VA_ARGS__)

#define TANDEM_TRANSFORM_ENTRY(NAME, SUMMARY, ASKED_BY, ...)                          \
  namespace tandem {                                                                  \
  extern const TransformEntry NAME##_transform_entry;                                 \
  const TransformEntry NAME##_transform_entry{#NAME, SUMMARY, ASKED_BY, __VA_ARGS__}; \
  }
