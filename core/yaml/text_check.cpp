#include "core/yaml/text_check.hpp"

#include <cstddef>

namespace tandem {
namespace {

// Length of the UTF-8 character at `at`, 0 if there is none (RFC 3629: no overlong forms, no surrogates).
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const auto first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  const auto second = byte(1);
  const bool is_overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool is_outside = (first == 0xED && second > 0x9F) || (first == 0xF4 && second > 0x8F);
  return is_overlong || is_outside ? 0 : length;
}

}  // namespace

TextFault find_text_fault(std::string_view text) {
  TextFault place;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (is_control(c) && c != '\n' && c != '\r' && c != '\t') {
      place.kind = "a control character";
      return place;
    }
    const std::size_t length = utf8_length(text, at);
    if (length == 0) {
      place.kind = "a byte that is not UTF-8";
      return place;
    }
    at += length;
    place.column = c == '\n' ? 1 : place.column + 1;
    place.line += c == '\n' ? 1 : 0;
    if (place.column > kMostLineBytes) {
      place.kind = "a line longer than 65536 characters";
      return place;
    }
  }
  return place;
}

}  // namespace tandem
