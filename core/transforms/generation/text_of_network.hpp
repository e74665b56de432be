// Which text of a network grows, and whether its prompts may have several lengths. Must not know steps.
#pragma once

#include <cstdint>
#include <string>

#include "core/model/network.hpp"

namespace tandem {

inline constexpr const char* kDecoders =
    "a decoder of text, alone or behind an encoder, or a unet with generate.steps alone";

[[noreturn]] void refuse_to_generate(const std::string& problem, const std::string& allowed);
[[noreturn]] void refuse_without_text(const Network& trained);

// The place of its tokens in the batch. Throws ConfigError for a network that has none.
std::int32_t text_that_grows(const Network& trained);

// Where shorter prompts are padded to the longest: why this network's texts would not be theirs alone; empty: they are.
std::string needs_one_length(const Network& trained);

}  // namespace tandem
