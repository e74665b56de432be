// Batches of a text file, read where they are needed: the file is never held in memory. Its bytes are the tokens, or,
// where the vocabulary has fewer than all bytes, its characters: those that occur in it, in order.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/input_file.hpp"
#include "runtime/batch_hash.hpp"
#include "runtime/data.hpp"
#include "runtime/text_tokens.hpp"

namespace tandem {

class TextData final : public DataSource {
 public:
  // `saved`: what the checkpoint that the run goes on from says. Throws ConfigError for a file that cannot be read, is
  // shorter than one row and its last target, or has more characters than the vocabulary.
  TextData(const Scenario& scenario, const SavedData& saved);

  void next_token_batch(BatchKey key, std::int64_t batch, std::int64_t sequence, std::int64_t* inputs,
                        std::int64_t* targets) const override;
  void masked_token_batch(BatchKey key, std::int64_t batch, std::int64_t sequence, std::int64_t vocabulary,
                          std::int64_t* inputs, std::int64_t* targets) const override;
  void image_batch(BatchKey key, std::int64_t batch, std::int64_t inputs, float* images,
                   std::int64_t* labels) const override;
  SavedData saved() const override { return {order_.by_micro_batch, tokens_.characters(), checksum_}; }
  std::string remark() const override { return remark_; }

 private:
  // `count` bytes of the training text, or of what is held out, from a place drawn for the row. Throws DeviceError if
  // the file has changed under the run.
  std::vector<unsigned char> text(std::uint64_t draw, std::int64_t count, bool held_out) const;
  void check_parts(const Scenario& scenario) const;
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
  // Positions of a row that are masked.
  std::vector<std::int64_t> masked(const RowKey& draws, std::int64_t sequence) const;

  std::string path_;
  SampleOrder order_;
  TextTokens tokens_;
  std::string remark_;
  std::string checksum_;  // where the run saves, or goes on
  std::unique_ptr<InputFile> file_;
  std::int64_t bytes_ = 0, held_out_bytes_ = 0;  // of the file, and at its end
};

}  // namespace tandem
