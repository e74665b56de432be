// Batches of a text file, read where they are needed: the file is never held in memory. Its bytes are the tokens, or,
// where the vocabulary has fewer than all bytes, its characters: those that occur in it, in order.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/input_file.hpp"
#include "runtime/text_tokens.hpp"
#include "runtime/token_batches.hpp"

namespace tandem {

// Of data.text.
std::string text_path(const Scenario& scenario);

class TextData final : public TokenBatches {
 public:
  // `saved`: what the checkpoint that the run goes on from says. Throws ConfigError for a file that cannot be read, is
  // shorter than one row and its last target, or has more characters than the vocabulary.
  TextData(const Scenario& scenario, const SavedData& saved);

  SavedData saved() const override { return {order().by_micro_batch, tokens_.characters(), checksum_}; }
  std::string remark() const override { return remark_; }

 private:
  void read_tokens(std::int64_t first, std::span<std::int64_t> out) const override;
  // `kind`: what the file looks like, if not like text.
  void choose_tokens(const Scenario& scenario, const SavedData& saved, const std::string& kind);
  // Reads into all of `out` from a place in the file. Throws DeviceError.
  void read(std::int64_t first, std::span<unsigned char> out) const;
  // All bytes that occur in the file, in order.
  std::string characters() const;
  std::string checksum_of_text() const;
  std::string what_it_looks_like() const;
  // Throws DeviceError for a character that the text did not have when the run began.
  std::int64_t token(unsigned char byte) const;

  std::string path_;
  TextTokens tokens_;
  std::string remark_;
  std::string checksum_;  // where the run saves, or goes on
  std::unique_ptr<InputFile> file_;
  std::int64_t bytes_ = 0;
};

}  // namespace tandem
