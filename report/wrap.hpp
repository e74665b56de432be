// Lines of a terminal's width. Must not know what they say.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

namespace tandem {

inline constexpr std::size_t kTerminalColumns = 80;
inline constexpr std::size_t kAnyColumns = std::numeric_limits<std::size_t>::max();  // nothing is wrapped

// Columns of UTF-8 text whose characters take one each.
std::size_t columns_of(std::string_view text);
// The first so many columns of it.
std::string first_columns(std::string_view text, std::size_t columns);

// `text` broken at its blanks, so that each line ends within `columns`; those after the first begin with `indent`
// blanks, and the first stands where so many columns are taken already. A word that is longer has a line of its own.
// Without a line break at its end.
std::string wrapped(std::string_view text, std::size_t columns, std::size_t indent = 0);

}  // namespace tandem
