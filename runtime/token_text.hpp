// Text as tokens and back: by a scenario's tokenizer, by bytes, or as numbers. Must not know runs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/scenario/scenario.hpp"
#include "runtime/tokenizer/tokenizer.hpp"

namespace tandem {

class TokenText {
 public:
  // `as_numbers`: text is numbers with spaces between. Throws ConfigError for a tokenizer that cannot be read.
  TokenText(const Scenario& scenario, bool as_numbers);
  // `where`: what errors begin with. Throws ConfigError for what has no token, or one that the network does not know.
  std::vector<std::int64_t> tokens_of(const std::string& text, const std::string& where);
  // A token that stands for nothing is shown as its number: <257>.
  std::string bytes_of(std::span<const std::int64_t> tokens) const;
  bool as_numbers() const { return as_numbers_; }

 private:
  bool as_numbers_;
  std::int64_t room_;  // tokens that the network knows
  std::optional<Tokenizer> tokenizer_;
  std::vector<std::string> bytes_;  // of each token
};

// The longest beginning of `bytes` that ends no character of UTF-8 in its midst: what may be shown now.
std::size_t whole_characters(std::string_view bytes);

}  // namespace tandem
