// The word that somebody meant. Must not know what the words name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// The closest of `allowed` to `word` by edit distance if near enough to be a slip, else "".
std::string suggest(std::string_view word, const std::vector<std::string>& allowed);

}  // namespace tandem
