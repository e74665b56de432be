// How many tokens each text of a block has, where a scenario gives a distribution instead of one number. Must not know
// what generates.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/yaml/values.hpp"

namespace tandem {

// Where KeyValues `generate` has them, beside the longest one under the key itself.
inline constexpr const char *kPromptLengths = "prompt_lengths", *kOutputLengths = "output_lengths";

// A block's, in the order of its texts; empty where the key has one number, or no sound distribution. What is drawn is
// a function of the key, the seed and the text's number alone.
std::vector<std::int64_t> text_lengths(const Values& values, const std::string& key, std::int64_t texts,
                                       std::uint64_t seed);

// What is wrong with a distribution that its schema cannot say: the problem and what is allowed; empty: nothing.
struct WrongLengths {
  std::vector<std::string> paths;  // one of which is at fault
  std::string problem, allowed;
};
WrongLengths wrong_lengths(const Values& values, const std::string& key, std::int64_t texts);

}  // namespace tandem
