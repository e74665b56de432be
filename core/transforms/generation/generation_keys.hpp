// The keys of a scenario's `generate`. Must not know networks.
#pragma once

#include <vector>

#include "core/scenario/family_keys.hpp"
#include "core/scenario/scenario.hpp"

namespace tandem {

const std::vector<FamilyKey>& generation_keys();
// Those of images, which stand alone, the first of them always.
const std::vector<FamilyKey>& denoising_keys();
// Of a family's keys, the one that says how many tokens the text that grows may have: behind an encoder of text it has
// one of its own, where that is given.
const char* text_length_key(const KeyValues& keys);
void set_text_length(KeyValues& keys, std::int64_t tokens);
bool generates(const WorkloadOptions& workload);
inline bool generates(const Scenario& scenario) { return generates(scenario.workload); }
// It makes images of noise, a little in each step, instead of texts.
bool denoises(const WorkloadOptions& workload);

// Of every text of a block. Of images, a step is what a new token is, the first one behind a prompt of 1.
struct GenerationSizes {
  explicit GenerationSizes(const WorkloadOptions& workload);
  bool denoises;
  std::int64_t prompt, new_tokens;             // of the longest
  std::vector<std::int64_t> prompts, outputs;  // of each text, where they differ; else none
  // Of each text, the tokens before its own prompt; empty: there are none.
  std::vector<std::int64_t> padding() const;
  std::int64_t page;        // tokens whose keys and values lie together, behind the prompt's, which do as well; 0: none
  std::int64_t cache_bits;  // of a number of a page; 0: as it is computed
  bool eager_codes;         // codes are made and read by a kernel for each operation
  std::int64_t stop_token;  // kNone: texts end after new_tokens
  double temperature;       // 0: the likeliest token is taken
  std::int64_t top_k;       // of which one is drawn; 0: of all
  double guidance;          // of images; 0: none, and the network computes each of them once a step
};

}  // namespace tandem
