// Batches of bytes of a text file, read where they are needed: the file is never held in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/data.hpp"

namespace tandem {

class TextData final : public DataSource {
 public:
  // Throws ConfigError for a file that cannot be read or is shorter than one row and its last target.
  explicit TextData(const Scenario& scenario);
  ~TextData() override;
  TextData(const TextData&) = delete;
  TextData& operator=(const TextData&) = delete;

  void next_token_batch(BatchKey key, std::int64_t batch, std::int64_t sequence, std::int64_t* inputs,
                        std::int64_t* targets) const override;
  void masked_token_batch(BatchKey key, std::int64_t batch, std::int64_t sequence, std::int64_t vocabulary,
                          std::int64_t* inputs, std::int64_t* targets) const override;
  void image_batch(BatchKey key, std::int64_t batch, std::int64_t inputs, float* images,
                   std::int64_t* labels) const override;

 private:
  // `count` bytes of the training text, or of what is held out, from a place drawn for the row. Throws DeviceError if
  // the file has changed under the run.
  std::vector<unsigned char> text(std::uint64_t draw, std::int64_t count, bool held_out) const;
  void check_parts(const Scenario& scenario) const;

  std::string path_;
  std::uint64_t seed_;
  std::int64_t vocabulary_;
  int descriptor_ = -1;
  std::int64_t bytes_ = 0, held_out_bytes_ = 0;  // of the file, and at its end
};

}  // namespace tandem
