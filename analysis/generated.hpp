// What a run that generates comes to: when the first token of each text is there, and how many come a second; or how
// many images do, of which a step is what a token is of a text.
// Must not know formats or worlds.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/timeline.hpp"
#include "core/scenario/scenario.hpp"

namespace tandem {

struct Generated {
  // From the first command that computes, when weights may still be on their way, to the end of the first step.
  double first_token_s = 0;
  double token_s = 0;             // a later step, the mean
  double tokens_per_s = 0;        // of all texts, the first step with its prompts among the time
  double later_tokens_per_s = 0;  // without the first step
  double images_per_s = 0;        // 0: it generates text
  bool has_cache = true;          // of keys and values; else each step computes whole texts
  // Where texts have lengths of their own, what is computed for nobody, which rates leave out: the share of the
  // prompts' tokens that pad shorter ones, and of new tokens those behind their texts' ends.
  struct Unused {
    double of_prompts = 0, of_new_tokens = 0;
  };
  std::optional<Unused> unused;
};

// New tokens that are texts' own of steps [from, to) of a block.
std::int64_t own_tokens(const WorkloadOptions& workload, std::int64_t from, std::int64_t to);

// None for a scenario that trains, and where no step is complete. `head_ns`: from the run's start to the end of its
// first step; `times_ns`: of later steps.
std::optional<Generated> generated(const Scenario& scenario, const Timeline& timeline, std::int64_t head_ns,
                                   const std::vector<std::int64_t>& times_ns);

}  // namespace tandem
