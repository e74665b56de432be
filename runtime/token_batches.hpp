// Batches of a long row of tokens, wherever it is: samples begin at places that are drawn, next tokens follow, or some
// are masked. Must not know files, texts or tokenizers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/batch_hash.hpp"
#include "runtime/data.hpp"

namespace tandem {

// Whether the last token of the scenario's vocabulary is the mask.
bool has_mask(const Scenario& scenario);
// Of an import, what the tokens of its text are below.
std::int64_t vocabulary_of(const Scenario& scenario);
// How many tokens data may have: all of the vocabulary but the mask.
std::int64_t token_room(const Scenario& scenario);

class TokenBatches : public DataSource {
 public:
  void next_token_batch(BatchKey key, std::int64_t batch, std::int64_t sequence, std::int64_t* inputs,
                        std::int64_t* targets) const final;
  void masked_token_batch(BatchKey key, std::int64_t batch, std::int64_t sequence, std::int64_t vocabulary,
                          std::int64_t* inputs, std::int64_t* targets) const final;
  void image_batch(BatchKey key, std::int64_t batch, std::int64_t inputs, float* images,
                   std::int64_t* labels) const final;

 protected:
  explicit TokenBatches(SampleOrder order) : order_(order) {}
  const SampleOrder& order() const { return order_; }

  // How long the data is, and how messages say so: "data.text: FILE has 7 bytes".
  struct Length {
    std::string key, path, unit;
    std::int64_t items = 0;
  };
  // Sets apart what is held out. Throws ConfigError where a part has no room for a row and its last target.
  void divide(const Scenario& scenario, const Length& length);

 private:
  // Tokens [first, first + size of out). May be asked by several threads. Throws DeviceError.
  virtual void read_tokens(std::int64_t first, std::span<std::int64_t> out) const = 0;

  // `count` tokens of the training data, or of what is held out, from a place drawn for the row.
  std::vector<std::int64_t> row(std::uint64_t draw, std::int64_t count, bool held_out) const;
  // Positions of a row that are masked.
  std::vector<std::int64_t> masked(const RowKey& draws, std::int64_t sequence) const;

  SampleOrder order_;
  std::int64_t items_ = 0, held_out_ = 0;  // all, and at their end
};

}  // namespace tandem
