#include "report/wrap.hpp"

#include <algorithm>

namespace tandem {

std::size_t columns_of(std::string_view text) {
  constexpr unsigned char kLeadMask = 0xC0, kContinuation = 0x80;
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & kLeadMask) != kContinuation; }));
}

std::string first_columns(std::string_view text, std::size_t columns) {
  std::size_t end = text.size();
  while (columns_of(text.substr(0, end)) > columns) --end;
  return std::string(text.substr(0, end));
}

std::string wrapped(std::string_view text, std::size_t columns, std::size_t indent) {
  std::string lines;
  std::size_t at = indent;
  for (std::size_t begin = 0; begin < text.size();) {
    // A word with the blanks before it, which a break takes the place of.
    const std::size_t word = std::min(text.find_first_not_of(' ', begin), text.size());
    const std::size_t end = std::min(text.find(' ', word), text.size());
    const std::size_t width = columns_of(text.substr(begin, end - begin));
    if (begin > 0 && columns != kAnyColumns && at + width > columns) {
      lines += "\n" + std::string(indent, ' ');
      at = indent + columns_of(text.substr(word, end - word));
      lines += text.substr(word, end - word);
    } else {
      lines += text.substr(begin, end - begin);
      at += width;
    }
    begin = end;
  }
  return lines;
}

}  // namespace tandem
