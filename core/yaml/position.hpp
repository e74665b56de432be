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
  int column = 0;  // of a --set argument: which one it is, so that messages keep their order
  // How far from whoever asked: 0 the file that is read, 1 the profile that it names, 2 what that one derives from, and
  // so on. Of two values that contradict each other the nearer one is to be corrected.
  int distance = 0;
  std::string text() const;  // "file:line:column", or "file" where there are no lines
};
inline constexpr int kFlagDistance = -1;          // --set: nearer than any file
inline constexpr int kDefaultDistance = 1 << 20;  // nobody wrote it

// One thing that is wrong, and where: "position: key: problem; allowed: allowed".
class Finding : public ConfigError {
 public:
  Finding(const Position& at, const std::string& key, const std::string& problem, const std::string& allowed);
  Finding(const Position& at, const std::string& key, const std::string& text);  // what follows the key
  const Position& at() const { return at_; }
  const std::string& key() const { return key_; }

 private:
  Position at_;
  std::string key_;
};
// Throws Finding.
[[noreturn]] void refuse(const Position& at, const std::string& key, const std::string& problem,
                         const std::string& allowed);

// For what a message says beside `near`: " (file:line:column)", or "" where that is in the same file or nobody wrote
// it.
std::string elsewhere(const Position& place, const Position& near);

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
