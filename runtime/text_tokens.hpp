// What number a byte of a text is to a network: itself, where the vocabulary has room for all bytes, else the place of
// its character among those that occur in the text. Must not know files or batches.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tandem {

inline constexpr std::int64_t kByteValues = 256;

class TextTokens {
 public:
  // Every byte is its own token.
  static TextTokens of_bytes();
  // The characters' places in `characters`, which has each once.
  static TextTokens of_characters(std::string_view characters);
  // Bytes modulo a vocabulary, as checkpoints of format 2 were trained.
  static TextTokens folded(std::int64_t vocabulary);

  // kUnknown for a character that is none of them.
  std::int64_t of(unsigned char byte) const { return tokens_[byte]; }
  // In order of their tokens; "" where bytes are tokens.
  const std::string& characters() const { return characters_; }

  static constexpr std::int64_t kUnknown = -1;

 private:
  std::array<std::int64_t, kByteValues> tokens_{};
  std::string characters_;
};

// A character, as messages name it: 'a', or 0x0A where it cannot be seen.
std::string shown_character(unsigned char byte);

}  // namespace tandem
