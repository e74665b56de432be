// A regular expression that cuts a text into pieces, at what it matches. Keeps PCRE2 out of sight;
// must not know tokens.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace tandem {

// A pattern that is malformed, or takes too long on a text.
class BadPattern : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What becomes of what is matched: a piece of its own, the end of the piece before, the beginning of the next, or
// nothing.
enum class Matched : std::uint8_t { Isolated, EndsPiece, BeginsPiece, Removed };

class SplitPattern {
 public:
  // With Unicode's classes, as the tokenizers library reads it: \s is Unicode's White_Space. `literal`: the text
  // itself. Throws BadPattern.
  explicit SplitPattern(const std::string& pattern, bool literal = false, Matched matched = Matched::Isolated);

  // Calls `take` with each piece of valid UTF-8, in order, none of them empty. Throws BadPattern. One thread at a time.
  void split(std::string_view text, const std::function<void(std::string_view)>& take) const;

 private:
  struct Code;
  std::shared_ptr<Code> code_;
  Matched matched_;
};

}  // namespace tandem
