#include "runtime/text_tokens.hpp"

#include <cstdio>

#include "core/base/check.hpp"

namespace tandem {

TextTokens TextTokens::of_bytes() { return folded(kByteValues); }

TextTokens TextTokens::of_characters(std::string_view characters) {
  TextTokens tokens;
  tokens.characters_ = characters;
  tokens.tokens_.fill(kUnknown);
  for (std::size_t i = 0; i < characters.size(); ++i) {
    std::int64_t& token = tokens.tokens_[static_cast<unsigned char>(characters[i])];
    CHECK(token == kUnknown, "a character twice", i);
    token = static_cast<std::int64_t>(i);
  }
  return tokens;
}

TextTokens TextTokens::folded(std::int64_t vocabulary) {
  CHECK(vocabulary > 0, vocabulary);
  TextTokens tokens;
  for (std::int64_t byte = 0; byte < kByteValues; ++byte)
    tokens.tokens_[static_cast<std::size_t>(byte)] = byte % vocabulary;
  return tokens;
}

std::string shown_character(unsigned char byte) {
  const bool visible = byte > 0x20 && byte < 0x7f;
  char text[8];
  std::snprintf(text, sizeof text, visible ? "'%c'" : "0x%02X", byte);
  return text;
}

}  // namespace tandem
