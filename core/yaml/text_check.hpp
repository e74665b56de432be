// Finds bytes that have no place in a text file, before a parser that would misread them sees the text.
#pragma once

#include <string_view>

namespace tandem {

inline bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7F;
}

struct TextFault {
  const char* kind = nullptr;  // nullptr: none
  int line = 1;
  int column = 1;
};

// A YAML parser reads a line ahead of what it reports: much longer lines would delay every other limit.
inline constexpr int kMostLineBytes = 1 << 16;

// The first control character (yaml-cpp ends its input at byte 4, silently), byte that is not UTF-8, or line that is
// too long.
TextFault find_text_fault(std::string_view text);

}  // namespace tandem
