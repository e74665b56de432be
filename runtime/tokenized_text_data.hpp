// Batches of a text that a tokenizer.json makes tokens of: once, when it is opened; the tokens are kept in memory, four
// bytes each. Must not know how tokens are made.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/token_batches.hpp"
#include "runtime/tokenizer/tokenizer.hpp"

namespace tandem {

// data.tokenizer. Throws ConfigError for a file that cannot be read, and for a tokenizer of another kind.
Tokenizer open_tokenizer(const Scenario& scenario);

class TokenizedTextData final : public TokenBatches {
 public:
  // `saved`: what the checkpoint that the run goes on from says. Throws ConfigError for files that cannot be read, a
  // tokenizer of another kind, a token that the vocabulary has not, and a text that is too short.
  TokenizedTextData(const Scenario& scenario, const SavedData& saved);

  SavedData saved() const override { return {order().by_micro_batch, "", checksum_}; }
  std::string remark() const override { return remark_; }

 private:
  void read_tokens(std::int64_t first, std::span<std::int64_t> out) const override;
  void require_room(const Scenario& scenario, const std::string& path, std::int64_t size) const;

  std::vector<std::uint32_t> tokens_;
  std::string checksum_;  // of the tokens, where the run saves, or goes on
  std::string remark_;
};

}  // namespace tandem
