// What can be computed: families of models (core/model/families), which say what network they are, and workloads that
// make their steps by themselves (core/workloads). One file each, registered by its last line. Must not know policies,
// machines or worlds.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "core/model/families/common/entry.hpp"

namespace tandem {

// All families in alphabetical order.
const std::vector<const WorkloadEntry*>& workloads();
const WorkloadEntry* find_workload(std::string_view name);
// With the fallbacks of the family's keys that are not given.
WorkloadOptions completed(WorkloadOptions options);
// The network that a scenario trains. Throws ConfigError for a workload that has none.
Network network_of(const Scenario& scenario);

}  // namespace tandem

// The last line of core/workloads/<name>.cpp. CMake's generated table names <name>_workload_entry for each file.
#define TANDEM_WORKLOAD(NAME, SOURCE, KEYS, SUMMARY)                                 \
  namespace tandem {                                                                 \
  extern const WorkloadEntry NAME##_workload_entry;                                  \
  const WorkloadEntry NAME##_workload_entry{#NAME, SUMMARY, &KEYS, nullptr, SOURCE}; \
  }
