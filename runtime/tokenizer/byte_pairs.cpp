#include "runtime/tokenizer/byte_pairs.hpp"

#include <algorithm>
#include <cstdio>
#include <queue>
#include <stdexcept>

namespace tandem {
namespace {

// Pieces that are remembered, of at most so many bytes: words come again, what is long hardly does.
constexpr std::size_t kMostKnown = 1 << 20, kLongestKnown = 256;
constexpr std::uint32_t kNone32 = UINT32_MAX;

// A token of the piece so far, in a list.
struct Link {
  std::uint32_t id, before, behind;
};

[[noreturn]] void throw_no_token(char byte) {
  char text[48];
  std::snprintf(text, sizeof text, "no token for the byte 0x%02X", static_cast<unsigned char>(byte));
  throw std::out_of_range(text);
}

[[noreturn]] void throw_no_token(std::string_view character) {
  throw std::out_of_range("no token for \"" + std::string(character) + "\", and none that stands for unknown ones");
}

std::size_t bytes_of_character(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

struct Candidate {
  std::uint32_t rank, at, left, right, made;
  // The least rank first, and of equal ones the leftmost.
  bool operator<(const Candidate& o) const { return rank != o.rank ? rank > o.rank : at > o.at; }
};

}  // namespace

bool BytePairs::add_merge(const std::string& left, const std::string& right) {
  const auto a = ids_.find(left), b = ids_.find(right), both = ids_.find(left + right);
  if (a == ids_.end() || b == ids_.end() || both == ids_.end()) return false;
  merges_[pair_of(a->second, b->second)] = {ranks_++, both->second};
  return true;
}

void BytePairs::encode(std::string_view piece, std::vector<std::uint32_t>& out) {
  if (takes_whole_)
    if (const auto found = ids_.find(piece); found != ids_.end()) return out.push_back(found->second);
  if (piece.size() > kLongestKnown) return merge(piece, out);
  auto found = known_.find(piece);
  if (found == known_.end()) {
    if (known_.size() >= kMostKnown) known_.clear(), made_.clear();
    const std::size_t first = made_.size();
    merge(piece, made_);
    found = known_.emplace(piece, Made{first, made_.size() - first}).first;
  }
  const auto first = made_.begin() + static_cast<std::ptrdiff_t>(found->second.first);
  out.insert(out.end(), first, first + static_cast<std::ptrdiff_t>(found->second.count));
}

std::optional<std::uint32_t> BytePairs::find(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::uint32_t> BytePairs::tokens_of_bytes(std::string_view piece) const {
  std::vector<std::uint32_t> ids;
  for (std::size_t i = 0; i < piece.size(); ++i) {
    const auto id = find(piece.substr(i, 1));
    if (!id) throw_no_token(piece[i]);
    ids.push_back(*id);
  }
  return ids;
}

std::vector<std::uint32_t> BytePairs::tokens_of_characters(std::string_view piece) const {
  std::vector<std::uint32_t> ids;
  bool unknown = false;  // the unknown token comes next, before a character that is known
  const auto end_unknown = [&] {
    if (unknown) ids.push_back(*characters_->unknown);
    unknown = false;
  };
  for (std::size_t i = 0, size = 0; i < piece.size(); i += size) {
    size = std::min(bytes_of_character(piece[i]), piece.size() - i);
    const std::string_view character = piece.substr(i, size);
    if (const auto id = find(character)) {
      end_unknown();
      ids.push_back(*id);
      continue;
    }
    const auto byte = [&](char c) { return characters_->bytes[static_cast<unsigned char>(c)]; };
    if (std::all_of(character.begin(), character.end(), [&](char c) { return byte(c).has_value(); })) {
      for (const char c : character) ids.push_back(*byte(c));
      continue;
    }
    if (!characters_->unknown) throw_no_token(character);
    if (!characters_->fuses) end_unknown();
    unknown = true;
  }
  end_unknown();
  return ids;
}

void BytePairs::merge(std::string_view piece, std::vector<std::uint32_t>& out) const {
  const std::vector<std::uint32_t> ids = characters_ ? tokens_of_characters(piece) : tokens_of_bytes(piece);
  std::vector<Link> links;
  links.reserve(ids.size());
  for (std::uint32_t at = 0; at < ids.size(); ++at)
    links.push_back({ids[at], at == 0 ? kNone32 : at - 1, at + 1 == ids.size() ? kNone32 : at + 1});
  std::priority_queue<Candidate> candidates;
  const auto consider = [&](std::uint32_t at) {
    if (at == kNone32 || links[at].behind == kNone32) return;
    const std::uint32_t left = links[at].id, right = links[links[at].behind].id;
    if (const auto found = merges_.find(pair_of(left, right)); found != merges_.end())
      candidates.push({found->second.rank, at, left, right, found->second.made});
  };
  for (std::uint32_t at = 0; at < links.size(); ++at) consider(at);
  while (!candidates.empty()) {
    const Candidate best = candidates.top();
    candidates.pop();
    Link& left = links[best.at];
    // One of both has been merged since.
    if (left.id != best.left || left.behind == kNone32 || links[left.behind].id != best.right) continue;
    Link& right = links[left.behind];
    left.id = best.made, right.id = kNone32, left.behind = right.behind;
    if (left.behind != kNone32) links[left.behind].before = best.at;
    consider(left.before);
    consider(best.at);
  }
  for (std::uint32_t at = links.empty() ? kNone32 : 0; at != kNone32; at = links[at].behind)
    out.push_back(links[at].id);
}

}  // namespace tandem
