#include "runtime/token_text.hpp"

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "core/base/errors.hpp"
#include "runtime/token_batches.hpp"
#include "runtime/tokenized_text_data.hpp"
#include "runtime/tokenizer/utf8_text.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kBytes = 256;

std::vector<std::int64_t> numbers_of(const std::string& text, const std::string& where) {
  std::vector<std::int64_t> tokens;
  for (std::size_t at = text.find_first_not_of(' '); at < text.size(); at = text.find_first_not_of(' ', at)) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const auto [stop, error] = std::from_chars(&text[at], text.data() + end, tokens.emplace_back());
    if (error != std::errc() || stop != text.data() + end)
      throw ConfigError(where + "'" + text.substr(at, end - at) +
                        "' is no token; allowed: whole numbers with spaces between");
    at = end;
  }
  return tokens;
}

}  // namespace

TokenText::TokenText(const Scenario& scenario, bool as_numbers) : as_numbers_(as_numbers), room_(token_room(scenario)) {
  if (as_numbers_) return;
  if (!scenario.data_tokenizer.empty()) {
    tokenizer_ = open_tokenizer(scenario);
    bytes_ = tokenizer_->bytes_of_tokens();
    return;
  }
  for (std::int64_t byte = 0; byte < kBytes; ++byte) bytes_.emplace_back(1, static_cast<char>(byte));
}

std::vector<std::int64_t> TokenText::tokens_of(const std::string& text, const std::string& where) {
  std::vector<std::int64_t> tokens;
  if (as_numbers_) {
    tokens = numbers_of(text, where);
  } else if (tokenizer_) {
    std::int64_t replaced = 0;
    std::vector<std::uint32_t> encoded;
    try {
      tokenizer_->encode(valid_utf8(text, replaced), encoded);
    } catch (const std::out_of_range& error) {
      throw ConfigError(where + "the tokenizer has " + error.what() + "; allowed: text of its tokens");
    }
    tokens.assign(encoded.begin(), encoded.end());
  } else {
    for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
  }
  if (tokens.empty()) throw ConfigError(where + "has no tokens; allowed: one or more");
  for (const std::int64_t token : tokens)
    if (token < 0 || token >= room_)
      throw ConfigError(where + "has token " + std::to_string(token) + ", and workload.vocabulary is " +
                        std::to_string(room_) + "; allowed: tokens below that");
  return tokens;
}

std::string TokenText::bytes_of(std::span<const std::int64_t> tokens) const {
  std::string out;
  for (const std::int64_t token : tokens) {
    const auto place = static_cast<std::size_t>(token);
    if (as_numbers_)
      out += std::to_string(token) + ' ';
    else if (place < bytes_.size() && !bytes_[place].empty())
      out += bytes_[place];
    else
      out += '<' + std::to_string(token) + '>';
  }
  return out;
}

std::size_t whole_characters(std::string_view bytes) {
  constexpr std::size_t kLongest = 4;
  for (std::size_t back = 1; back <= std::min(kLongest, bytes.size()); ++back) {
    const auto byte = static_cast<unsigned char>(bytes[bytes.size() - back]);
    if ((byte & 0xC0U) == 0x80U) continue;  // goes on
    const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return length > back ? bytes.size() - back : bytes.size();
  }
  return bytes.size();
}

}  // namespace tandem
