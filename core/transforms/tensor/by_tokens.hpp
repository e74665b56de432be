// Calls that ranks compute of some of the tokens each: rows in a row. Must not know what else is divided.
#pragma once

#include <cstdint>
#include <string>

#include "core/model/module.hpp"

namespace tandem {

// Throws ConfigError unless the call computes each token by itself, and ranks divide them evenly.
void require_computes_by_tokens(const Module& module, const Call& call, std::int64_t ranks);
// Throws ConfigError unless ranks divide so many tokens evenly; `where` is named.
void require_divides(std::int64_t tokens, std::int64_t ranks, const std::string& where);
// Of a call that adds what stands for a token's place in its sequence: the first rank's. Others begin further on.
Attributes places_of_rank(const Call& call, std::int64_t ranks);

}  // namespace tandem
