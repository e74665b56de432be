// Byte pair encoding (Sennrich et al. 2016, arXiv 1508.07909; of bytes, Radford et al. 2019): a piece of text as the
// tokens that its bytes, or its characters, are merged to, the pair that was learnt first always next. Must not know
// files or texts.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tandem {

class BytePairs {
 public:
  // `token`: its bytes, or its characters.
  void add_token(std::string token, std::uint32_t id) { ids_[std::move(token)] = id; }
  // In the order of their ranks; both sides and both together are tokens: false else.
  bool add_merge(const std::string& left, const std::string& right);
  // Calls `take` with each token's bytes and number, in no order.
  template <class Take>
  void each_token(const Take& take) const {
    for (const auto& [bytes, id] : ids_) take(bytes, id);
  }
  // A piece that is a token is that one, however it would be merged.
  void take_whole_pieces() { takes_whole_ = true; }
  // Pieces begin as characters of valid UTF-8 instead of bytes. One that is no token is the tokens of its bytes, where
  // there are all of these; else it is the unknown token, of several in a row once if that fuses.
  struct Characters {
    std::array<std::optional<std::uint32_t>, 256> bytes;
    std::optional<std::uint32_t> unknown;
    bool fuses = false;
  };
  void take_characters(const Characters& characters) { characters_ = characters; }
  std::optional<std::uint32_t> find(std::string_view token) const;

  // Appends the piece's tokens. Throws std::out_of_range that names a byte or a character for which there is no token.
  // One thread at a time: pieces are remembered.
  void encode(std::string_view piece, std::vector<std::uint32_t>& out);

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  struct Merge {
    std::uint32_t rank = 0, made = 0;
  };
  struct Made {
    std::size_t first = 0, count = 0;  // of made_
  };
  static std::uint64_t pair_of(std::uint32_t left, std::uint32_t right) {
    return static_cast<std::uint64_t>(left) << 32 | right;
  }
  std::vector<std::uint32_t> tokens_of_bytes(std::string_view piece) const;
  std::vector<std::uint32_t> tokens_of_characters(std::string_view piece) const;
  void merge(std::string_view piece, std::vector<std::uint32_t>& out) const;

  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> ids_;
  std::unordered_map<std::uint64_t, Merge> merges_;
  std::uint32_t ranks_ = 0;
  bool takes_whole_ = false;
  std::optional<Characters> characters_;
  std::unordered_map<std::string, Made, Hash, std::equal_to<>> known_;  // pieces that were met
  std::vector<std::uint32_t> made_;
};

}  // namespace tandem
