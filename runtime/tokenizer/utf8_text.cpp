#include "runtime/tokenizer/utf8_text.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace tandem {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr std::size_t kPiece = std::size_t{1} << 16;  // that is composed at once, and what follows up to a line's end

unsigned char byte_at(std::string_view text, std::size_t at) { return static_cast<unsigned char>(text[at]); }

struct Form {
  int following = 0;                      // bytes after the first; -1: it begins nothing
  unsigned char low = 0x80, high = 0xBF;  // of the second
};

Form form_of(unsigned char first) {
  if (first < 0x80) return {0};
  if (first >= 0xC2 && first <= 0xDF) return {1};
  if (first == 0xE0) return {2, 0xA0, 0xBF};
  if (first == 0xED) return {2, 0x80, 0x9F};  // no surrogates
  if (first >= 0xE1 && first <= 0xEF) return {2};
  if (first == 0xF0) return {3, 0x90, 0xBF};
  if (first >= 0xF1 && first <= 0xF3) return {3};
  if (first == 0xF4) return {3, 0x80, 0x8F};
  return {-1};
}

// Bytes of the character at a place, or, negative, those of what begins like one and is none.
int length_at(std::string_view text, std::size_t at) {
  const Form form = form_of(byte_at(text, at));
  if (form.following < 0) return -1;
  for (int i = 1; i <= form.following; ++i) {
    const std::size_t next = at + static_cast<std::size_t>(i);
    const unsigned char low = i == 1 ? form.low : 0x80, high = i == 1 ? form.high : 0xBF;
    if (next >= text.size() || byte_at(text, next) < low || byte_at(text, next) > high) return -i;
  }
  return form.following + 1;
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

void append_composed(std::string_view text, std::string& out) {
  if (is_ascii(text)) return void(out.append(text));
  utf8proc_uint8_t* made = nullptr;
  const utf8proc_ssize_t bytes =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &made, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  if (bytes < 0) throw std::bad_alloc();  // of valid UTF-8, nothing else can be wrong
  out.append(reinterpret_cast<const char*>(made), static_cast<std::size_t>(bytes));
  std::free(made);
}

}  // namespace

std::string valid_utf8(std::string text, std::int64_t& replaced) {
  std::size_t at = 0;
  while (at < text.size()) {
    const int length = length_at(text, at);
    if (length < 0) break;
    at += static_cast<std::size_t>(length);
  }
  if (at == text.size()) return text;
  std::string out(text, 0, at);
  while (at < text.size()) {
    const int length = length_at(text, at);
    if (length > 0)
      out.append(text, at, static_cast<std::size_t>(length));
    else
      out += kReplacement, ++replaced;
    at += static_cast<std::size_t>(std::abs(length));
  }
  return out;
}

// A line's end composes with nothing, so lines can be composed by themselves.
std::string composed(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    std::size_t end = text.size() <= kPiece ? text.size() : text.find('\n', kPiece);
    end = end >= text.size() ? text.size() : end + 1;
    append_composed(text.substr(0, end), out);
    text.remove_prefix(end);
  }
  return out;
}

}  // namespace tandem
