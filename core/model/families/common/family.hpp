// What the file of a model family includes, and its last line. A family declares its keys and builds a network of the
// values that a scenario gives for them; all else is derived. Must not know policies, machines or steps.
#pragma once

#include "core/model/families/common/checks.hpp"
#include "core/model/families/common/entry.hpp"
#include "core/model/families/common/layers.hpp"

// The last line of core/model/families/<name>.cpp; BUILD: Network(const WorkloadOptions&), which throws ConfigError for
// values that do not go together. CMake's generated table names <name>_workload_entry for each file.
#define TANDEM_FAMILY(NAME, BUILD, KEYS, SUMMARY)                                   \
  namespace tandem {                                                                \
  extern const WorkloadEntry NAME##_workload_entry;                                 \
  const WorkloadEntry NAME##_workload_entry{#NAME, SUMMARY, &KEYS, BUILD, nullptr}; \
  }
