// Batches of a file of token numbers alone, little-endian, of two or four bytes each, as nanoGPT's and others'
// preparation writes: read where they are needed, never held in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/base/input_file.hpp"
#include "runtime/token_batches.hpp"

namespace tandem {

class TokenFileData final : public TokenBatches {
 public:
  // `saved`: what the checkpoint that the run goes on from says. Looks at all tokens. Throws ConfigError for a file
  // that cannot be read, is no whole number of tokens, is too short, or has a token that the vocabulary has not, with
  // its place.
  TokenFileData(const Scenario& scenario, const SavedData& saved);

  SavedData saved() const override { return {order().by_micro_batch, "", checksum_}; }

 private:
  void read_tokens(std::int64_t first, std::span<std::int64_t> out) const override;
  // All tokens are below the vocabulary; and the checksum of all bytes, if it is wanted.
  void look_at_all(const Scenario& scenario);
  // Bytes of the file. Throws DeviceError.
  void read(std::int64_t first, std::span<unsigned char> out) const;

  std::string path_;
  std::int64_t width_ = 2, room_ = 0;  // bytes of a token; the first that the data may not have
  std::string checksum_;               // where the run saves, or goes on
  std::unique_ptr<InputFile> file_;
};

}  // namespace tandem
