#include "runtime/tokenizer/added_tokens.hpp"

#include <algorithm>
#include <utility>

namespace tandem {
namespace {

// Unicode's White_Space.
constexpr std::string_view kSpaces[] = {
    "\t",           "\n",           "\v",           "\f",           "\r",           " ",
    "\xC2\x85",     "\xC2\xA0",     "\xE1\x9A\x80", "\xE2\x80\x80", "\xE2\x80\x81", "\xE2\x80\x82",
    "\xE2\x80\x83", "\xE2\x80\x84", "\xE2\x80\x85", "\xE2\x80\x86", "\xE2\x80\x87", "\xE2\x80\x88",
    "\xE2\x80\x89", "\xE2\x80\x8A", "\xE2\x80\xA8", "\xE2\x80\xA9", "\xE2\x80\xAF", "\xE2\x81\x9F",
    "\xE3\x80\x80"};

std::size_t spaces_at_begin(std::string_view text) {
  std::size_t bytes = 0;
  for (bool found = true; found;) {
    found = false;
    for (const std::string_view space : kSpaces)
      if (text.substr(bytes).starts_with(space)) bytes += space.size(), found = true;
  }
  return bytes;
}

std::size_t spaces_at_end(std::string_view text) {
  std::size_t bytes = 0;
  for (bool found = true; found;) {
    found = false;
    for (const std::string_view space : kSpaces)
      if (text.substr(0, text.size() - bytes).ends_with(space)) bytes += space.size(), found = true;
  }
  return bytes;
}

}  // namespace

void AddedTokens::add(AddedToken token) {
  if (token.content.empty()) return;
  std::vector<AddedToken>& tokens = by_first_[static_cast<unsigned char>(token.content.front())];
  const auto place = std::find_if(tokens.begin(), tokens.end(),
                                  [&](const AddedToken& other) { return other.content.size() < token.content.size(); });
  tokens.insert(place, std::move(token));
}

const AddedToken* AddedTokens::longest_at(std::string_view text) const {
  for (const AddedToken& token : by_first_[static_cast<unsigned char>(text.front())])
    if (text.starts_with(token.content)) return &token;
  return nullptr;
}

void AddedTokens::split(std::string_view text,
                        const std::function<void(std::string_view, std::optional<std::uint32_t>)>& take) const {
  std::size_t taken = 0;
  for (std::size_t at = 0; at < text.size();) {
    const AddedToken* token = longest_at(text.substr(at));
    if (token == nullptr) {
      ++at;
      continue;
    }
    std::size_t begin = at, end = at + token->content.size();
    if (token->takes_space_before) begin = std::max(taken, begin - spaces_at_end(text.substr(0, begin)));
    if (token->takes_space_behind) end += spaces_at_begin(text.substr(end));
    if (begin > taken) take(text.substr(taken, begin - taken), std::nullopt);
    take(text.substr(begin, end - begin), token->id);
    taken = at = end;
  }
  if (taken < text.size()) take(text.substr(taken), std::nullopt);
}

}  // namespace tandem
