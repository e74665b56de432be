// The first steps of a scenario by estimates alone: which ops it has, whether it fits, how much memory it takes. Must
// not know devices, nor what is done with the answer.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/machine/measured_ops.hpp"
#include "core/scenario/scenario.hpp"

namespace tandem {

struct DryRun {
  bool fits = false;
  std::string why_not;                // of one that does not
  std::map<OpKey, std::int64_t> ops;  // of the training steps, with how often each ran: those that are measured at all
  std::int64_t host_bytes = 0;        // at the peak
};

// Of `steps` training steps, on rank 0. Throws ConfigError for what cannot be made.
DryRun dry_run(const Scenario& scenario, std::int32_t steps);

}  // namespace tandem
