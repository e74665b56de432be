#include "core/base/shell_text.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace tandem {
namespace {

bool is_plain(char c) {
  constexpr std::string_view kMarks = "_-+=:,./@%";
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         kMarks.find(c) != std::string_view::npos;
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

// What drives a terminal is told by its code: messages show no such character.
std::string with_codes(std::string_view word) {
  std::string text = "$'";
  for (const char c : word) {
    std::array<char, 8> code{};
    if (is_control(c))
      std::snprintf(code.data(), code.size(), "\\%03o", static_cast<unsigned>(static_cast<unsigned char>(c)));
    if (is_control(c))
      text += code.data();
    else
      text += c == '\'' || c == '\\' ? std::string{'\\', c} : std::string{c};
  }
  return text + "'";
}

}  // namespace

std::string shell_path(std::string_view word) {
  return shell_word((word.starts_with("-") ? "./" : "") + std::string(word));
}

std::string shell_word(std::string_view word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return std::string(word);
  if (std::any_of(word.begin(), word.end(), is_control)) return with_codes(word);
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string{c};
  return text + "'";
}

}  // namespace tandem
