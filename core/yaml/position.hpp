// Where a value was written, and the one way to refuse it. Must not know YAML or schemas.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/base/errors.hpp"

namespace tandem {

// A place in a file, or (line 0) something without lines such as a --set argument.
struct Position {
  std::shared_ptr<const std::string> file;
  int line = 0;
  int column = 0;
  std::string text() const;  // "file:line:column", or "file" where there are no lines
};

// Throws ConfigError "position: key: problem; allowed: allowed".
[[noreturn]] void refuse(const Position& at, const std::string& key, const std::string& problem,
                         const std::string& allowed);

// A word of the input inside quotes for a message: shortened, and free of what could confuse a terminal.
std::string shown(std::string_view word);
// The same without quotes and without a limit, for file names.
std::string printable(std::string_view word);

// "a, b, c".
template <typename Words>
std::string join(const Words& words, std::string_view separator = ", ") {
  std::string out;
  for (const auto& word : words) {
    if (!out.empty()) out += separator;
    out += word;
  }
  return out;
}

}  // namespace tandem
