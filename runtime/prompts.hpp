// The prompts that a person brings, and how they are cut into runs. Must not know how runs go.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/token_text.hpp"

namespace tandem {

struct Prompt {
  std::size_t number = 0;  // in the file, from 0
  std::string text;        // as it is there
  std::vector<std::int64_t> tokens;
};

// A line each, without its end; "-": standard input. Throws ConfigError "FILE:line: problem; what is allowed".
std::vector<Prompt> read_prompts(const std::string& path, TokenText& text);

// Prompts that are computed together, `micro_batches` times `batch`.
struct PromptBlock {
  std::int64_t batch = 1, micro_batches = 1;
  std::vector<Prompt> prompts;
};
// The shortest prompts first, in blocks as large as the scenario's, then what is left. `one_length`: each block has
// prompts of one.
std::vector<PromptBlock> blocks_of(std::vector<Prompt> prompts, std::int64_t batch, std::int64_t micro_batches,
                                   bool one_length);

}  // namespace tandem
