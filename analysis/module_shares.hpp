// What modules had of the steps of a run: of their critical path, and of the time that the device waited. Must not know
// formats or worlds.
#pragma once

#include <string>
#include <vector>

#include "analysis/analysis.hpp"
#include "analysis/module_groups.hpp"

namespace tandem {

struct GroupShare {
  double path_s = 0;     // of the critical path of a step: its ops, and copies of its tensors
  double exposed_s = 0;  // of that, while the device computes nothing: copies, updates and passes on the CPU
};

// By group; a last one of what is no module's: the batch, gaps between commands. Means over the steps that count, of
// the first rank.
std::vector<GroupShare> shares_of(const Analysis& run, const Network& network, const std::vector<ModuleGroup>& groups);

// The batch of a step.
struct InputTimes {
  std::string body;        // what fills it: "next_tokens"; "": nothing does
  std::int64_t bytes = 0;  // of a step's batches
  double load_s = 0;       // the loader's lane is busy
  double copy_s = 0;       // batches are copied to the device
  double exposed_s = 0;    // the device waits for the loader
  double compute_s = 0;    // the device computes
};
InputTimes input_times(const Analysis& run, const Network& network);

// Where data of several modalities meet: a group that reads modules whose modalities are fewer than its own.
struct Meeting {
  std::size_t group = 0;
  struct Branch {
    std::string module;  // the last one before
    Modalities modalities = 0;
    double ready_s = 0;  // after the first forward of the step began; 0 where there is no run
  };
  std::vector<Branch> branches;  // the first that is ready first
};
// `run`: null where there is none.
std::vector<Meeting> meetings_of(const Analysis* run, const Network& network, const std::vector<ModuleGroup>& groups);

}  // namespace tandem
