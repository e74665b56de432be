// The prompts that a person brings, and how they are cut into runs. Must not know how runs go.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/modality.hpp"
#include "runtime/token_text.hpp"

namespace tandem {

// What a network makes of a prompt.
enum class PromptKind : std::uint8_t {
  Text,     // the text that grows begins with it
  Samples,  // so it does, and there are pictures or sounds beside it
  Sources,  // an encoder reads it; the text that grows begins with token 0
};
// Throws ConfigError for a network that is asked in no such way.
PromptKind prompt_kind(const Scenario& scenario);

struct Prompt {
  std::size_t number = 0;  // in the file, from 0
  std::string text;        // as it is there
  std::vector<std::int64_t> tokens;
  std::array<std::string, std::size(kModalities)> files = {};  // by modality, absolute paths; "": it has none
  std::int64_t length = 0;  // tokens of the sequence that is read: its own, and those of pictures and sounds among them
};

// A line each, without its end; of samples a row each of a CSV file, as data.manifest has it. "-": standard input.
// Throws ConfigError "FILE:line: problem; what is allowed".
std::vector<Prompt> read_prompts(const std::string& path, TokenText& text, const Scenario& scenario);

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
