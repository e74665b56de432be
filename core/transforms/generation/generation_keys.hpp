// The keys of a scenario's `generate`. Must not know networks.
#pragma once

#include <vector>

#include "core/scenario/family_keys.hpp"
#include "core/scenario/scenario.hpp"

namespace tandem {

const std::vector<FamilyKey>& generation_keys();
// Of a family's keys, the one that says how many tokens the text that grows may have: behind an encoder of text it has
// one of its own, where that is given.
const char* text_length_key(const KeyValues& keys);
void set_text_length(KeyValues& keys, std::int64_t tokens);
bool generates(const Scenario& scenario);

// Of every text of a block.
struct GenerationSizes {
  explicit GenerationSizes(const WorkloadOptions& workload);
  std::int64_t prompt, new_tokens;
  std::int64_t page;        // tokens whose keys and values lie together, behind the prompt's, which do as well
  std::int64_t cache_bits;  // of a number of a page; 0: as it is computed
  bool eager_codes;         // codes are made and read by a kernel for each operation
  std::int64_t stop_token;  // kNone: texts end after new_tokens
  double temperature;       // 0: the likeliest token is taken
  std::int64_t top_k;       // of which one is drawn; 0: of all
};

}  // namespace tandem
