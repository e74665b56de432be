// Tokens that are found in a text as they are written, before it is cut into pieces: "<|endoftext|>". Must not know
// what becomes of the rest.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

struct AddedToken {
  std::string content;
  std::uint32_t id = 0;
  bool takes_space_before = false, takes_space_behind = false;  // as part of it
};

class AddedTokens {
 public:
  void add(AddedToken token);
  template <class Take>
  void each_token(const Take& take) const {
    for (const std::vector<AddedToken>& tokens : by_first_)
      for (const AddedToken& token : tokens) take(token.content, token.id);
  }

  // Calls `take` with each part of valid UTF-8, in order: the text between tokens, and tokens' ids. Of tokens that
  // begin at one place the longest is taken.
  void split(std::string_view text,
             const std::function<void(std::string_view, std::optional<std::uint32_t>)>& take) const;

 private:
  const AddedToken* longest_at(std::string_view text) const;
  std::array<std::vector<AddedToken>, 256> by_first_;  // byte, longest first
};

}  // namespace tandem
