// The workload interface: a model family turns options into a source of steps. One file a family, registered by its
// last line. Must not know policies, machines or worlds.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "core/graph/graph.hpp"
#include "core/graph/request.hpp"
#include "core/scenario/family_keys.hpp"
#include "core/scenario/scenario.hpp"

namespace tandem {

struct WorkloadEntry {
  std::string_view name;
  std::string_view summary;
  const FamilyKeys* keys;
  std::unique_ptr<StepSource> (*factory)(const Scenario&, const GraphRequest&);

  // Throws ConfigError (text without position) for options
  // that the family cannot build.
  std::unique_ptr<StepSource> make(const Scenario& scenario, const GraphRequest& request) const;
};

// All families in alphabetical order.
const std::vector<const WorkloadEntry*>& workloads();
const WorkloadEntry* find_workload(std::string_view name);
// With the fallbacks of the family's keys that are not given.
WorkloadOptions completed(WorkloadOptions options);

}  // namespace tandem

// The last line of core/workloads/<name>.cpp. CMake's generated table names <name>_workload_entry for each file.
#define TANDEM_WORKLOAD(NAME, FACTORY, KEYS, SUMMARY)                        \
  namespace tandem {                                                         \
  extern const WorkloadEntry NAME##_workload_entry;                          \
  const WorkloadEntry NAME##_workload_entry{#NAME, SUMMARY, &KEYS, FACTORY}; \
  }
