// What a block of texts that are generated together moves and computes: sums over a network's layers, from the graphs
// of its steps. Must not know where anything is placed.
#pragma once

#include <cstdint>

#include "core/scenario/scenario.hpp"

namespace tandem {

// A batch's way through the network once.
struct PassFigures {
  double compute_s = 0;                         // on the device, attention apart
  double attention_s = 0, cpu_attention_s = 0;  // on the device, on the CPU
  double query_bytes = 0;                       // what attention reads and makes beside keys and values
  double cache_read_bytes = 0, cache_written_bytes = 0;
  double hidden_bytes = 0;  // what passes between ops
};

struct BlockFigures {
  std::int64_t new_tokens = 1;
  double weight_bytes = 0;          // all
  double largest_weight_bytes = 0;  // of what moves together
  double layers = 1;                // that attend
  double cache_bytes = 0;           // of a batch, when its texts are complete
  double hidden_bytes = 0;          // of a batch, the prompts': the largest that passes between ops
  double at_work_bytes = 0;         // of the device while an op runs: all that it reads and makes, and its workspace
  bool cpu_attends = false;         // there is a body of attention for the CPU
  PassFigures prompts, token;       // the prompts' pass; a later token's, of a text half done
};

// Of `scenario`, which generates, with one batch. Throws ConfigError for what its network or its keys do not allow.
BlockFigures block_figures(Scenario scenario);

}  // namespace tandem
