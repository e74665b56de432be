// A byte-level BPE tokenizer as Hugging Face's tokenizers library has it: added tokens, a normal form, patterns that
// cut a text into pieces, and merges of bytes. Must not know files or batches.
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

// One of the steps that cut pieces into smaller ones.
struct Cut {
  bool adds_space = false;             // before a piece that begins with none
  std::vector<SplitPattern> patterns;  // one, or none: pieces stay whole
};

struct Tokenizer {
  AddedTokens as_written, normalised;  // found before, and after the text has its normal form
  bool composes = false;               // the normal form is NFC; else the text stays as it is
  std::vector<Cut> cuts;
  BytePairs pairs;
  std::int64_t size = 0;  // one more than its largest token

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
};

}  // namespace tandem
