// Batches for training: a corpus of bytes, or labelled images. The samples of a training step are numbered, and are the
// same ones in the same order for the same number of them, however they are cut into micro-batches and ranks. With
// validation on, the last part of the data is held out: it is in no training batch, and all that held-out batches are
// of. Must not know ops or executors.
#pragma once

#include <cstdint>
#include <memory>

#include "core/scenario/scenario.hpp"
#include "runtime/checkpoint/manifest.hpp"

namespace tandem {

struct BatchKey {
  std::int32_t step = 0, micro_batch = 0, rank = 0;
  bool held_out = false;  // then the step counts for nothing: every evaluation sees the same batches
  std::int32_t part = 0;  // of each sample's tokens, where ranks divide these
};

// Items (bytes, images) that are held out, of `items`.
std::int64_t held_out_items(const ValidationOptions& options, std::int64_t items);

// Whether a checksum of all data is of use: to a run that saves, or goes on from what another saved.
inline bool keeps_checksum(const Scenario& scenario) {
  return !scenario.checkpoint.directory.empty() || !scenario.resume_folder.empty();
}

class DataSource {
 public:
  virtual ~DataSource() = default;
  // Next-token batch: inputs and targets are [batch, sequence], targets shifted by one; tokens below vocabulary.
  virtual void next_token_batch(BatchKey key, std::int64_t batch, std::int64_t sequence, std::int64_t* inputs,
                                std::int64_t* targets) const = 0;
  // Masked-token batch (bert): 15% of each row's positions masked; targets are -100 (ignored) elsewhere. mask_token =
  // vocabulary - 1.
  virtual void masked_token_batch(BatchKey key, std::int64_t batch, std::int64_t sequence, std::int64_t vocabulary,
                                  std::int64_t* inputs, std::int64_t* targets) const = 0;
  // Images scaled to [0, 1] as [batch, inputs] floats, and their labels.
  virtual void image_batch(BatchKey key, std::int64_t batch, std::int64_t inputs, float* images,
                           std::int64_t* labels) const = 0;

  // What a run that goes on must read the same way, for its checkpoints.
  virtual SavedData saved() const { return {}; }
  // What is odd about the data, "key: text", for people; "" if nothing is.
  virtual std::string remark() const { return ""; }
  // What became of the data, for people, at the end of a run; "" if nothing is worth telling.
  virtual std::string account() const { return ""; }
};

// Opens what the scenario names, in the order and with the tokens of the checkpoint that it goes on from, if it does.
// Throws ConfigError for a missing or malformed file.
std::unique_ptr<DataSource> open_data(const Scenario& scenario);

}  // namespace tandem
