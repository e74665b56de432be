#include "core/yaml/position.hpp"

#include <array>
#include <cstddef>

namespace tandem {
namespace {

constexpr std::size_t kLongestWord = 60;  // bytes of the input that a message repeats

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

std::size_t character_length(std::string_view word, std::size_t at) {
  std::size_t length = 1;
  while (at + length < word.size() && continues_character(word[at + length])) ++length;
  return length;
}

// Characters that a terminal obeys or that hide what they stand beside: controls, zero-width and direction marks, and
// bytes that are no character at all.
bool is_unsafe(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first >= 0x7F;
  if (first < 0xC2) return true;
  if (first == 0xC2) return static_cast<unsigned char>(character[1]) < 0xA0;
  if (character.size() == 3 && first == 0xE2) {
    const auto second = static_cast<unsigned char>(character[1]);
    const auto third = static_cast<unsigned char>(character[2]);
    if (second == 0x80) return (third >= 0x8B && third <= 0x8F) || (third >= 0xA8 && third <= 0xAE);
    return second == 0x81 && third >= 0xA0 && third <= 0xAF;
  }
  return character == "\xEF\xBB\xBF";
}

void append_escaped(std::string& out, std::string_view character) {
  constexpr std::string_view kHex = "0123456789abcdef";
  for (const char c : character) {
    const auto byte = static_cast<unsigned char>(c);
    out += "\\x";
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
}

std::string escaped(std::string_view word, std::size_t limit) {
  std::string out;
  for (std::size_t at = 0; at < word.size();) {
    if (at >= limit) return out + "...";
    const std::string_view character = word.substr(at, character_length(word, at));
    if (is_unsafe(character)) {
      append_escaped(out, character);
    } else {
      out += character;
    }
    at += character.size();
  }
  return out;
}

}  // namespace

std::string Position::text() const {
  const std::string name = printable(file ? *file : std::string());
  return line == 0 ? name : name + ":" + std::to_string(line) + ":" + std::to_string(column);
}

Finding::Finding(const Position& at, const std::string& key, const std::string& text)
    : ConfigError(at.text() + ": " + key + ": " + text), at_(at), key_(key) {}

Finding::Finding(const Position& at, const std::string& key, const std::string& problem, const std::string& allowed)
    : Finding(at, key, problem + "; allowed: " + allowed) {}

void refuse(const Position& at, const std::string& key, const std::string& problem, const std::string& allowed) {
  throw Finding(at, key, problem, allowed);
}

std::string elsewhere(const Position& place, const Position& near) {
  const bool is_same_file = place.file == near.file || (place.file && near.file && *place.file == *near.file);
  if (is_same_file || !place.file || place.distance == kDefaultDistance) return "";
  return " (" + place.text() + ")";
}

std::string shown(std::string_view word) {
  std::string out(1, '\'');
  out += escaped(word, kLongestWord);
  out += '\'';
  return out;
}

std::string printable(std::string_view word) { return escaped(word, word.size()); }

}  // namespace tandem
