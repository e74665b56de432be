// A BPE tokenizer as Hugging Face's tokenizers library has it: added tokens, a normal form, patterns that cut a text
// into pieces, and merges of bytes, or of characters as SentencePiece has them. Must not know files or batches.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tokenizer/added_tokens.hpp"
#include "runtime/tokenizer/byte_pairs.hpp"
#include "runtime/tokenizer/split_pattern.hpp"

namespace tandem {

// One of the steps to a text's normal form, of what stands between added tokens.
struct Normalising {
  enum class How : std::uint8_t { Composed, Prepended, Replaced } how = How::Composed;
  std::string what, with;  // Replaced: each of this; Prepended, Replaced: by this
};

// One of the steps that cut pieces into smaller ones.
struct Cut {
  enum class Prefix : std::uint8_t { None, First, Each } prefix = Prefix::None;  // a space, of what begins with none
  std::string space = " ";             // what each space becomes, and that one
  std::vector<SplitPattern> patterns;  // one, or none: pieces stay whole
};

struct Tokenizer {
  AddedTokens as_written, normalised;  // found before, and after the text has its normal form
  std::vector<Normalising> normal_form;
  std::vector<Cut> cuts;
  BytePairs pairs;
  std::string shown_as_space;  // in tokens, what stands for a space: merged characters; "": nothing does
  bool merges_characters = false;
  std::int64_t size = 0;  // one more than its largest token

  // Of valid UTF-8.
  std::string normal(std::string_view text) const;
  // Appends the tokens of valid UTF-8, without those that a template would add around it. Calls `progress` now and then
  // with the bytes that are done. Throws BadPattern, and std::out_of_range for a byte that no token stands for.
  void encode(std::string_view text, std::vector<std::uint32_t>& out,
              const std::function<void(std::size_t)>& progress = {});
  // Of each token, by its number, the bytes that it stands for; "" where none has the number.
  std::vector<std::string> bytes_of_tokens() const;

 private:
  void cut(std::string_view piece, std::size_t step, std::vector<std::uint32_t>& out);
  void tell(std::size_t bytes);

  std::function<void(std::size_t)> progress_;
  std::size_t done_ = 0, told_ = 0;  // bytes of the text that is encoded
  std::size_t begun_ = 0;            // tokens that were there before it
};

}  // namespace tandem
