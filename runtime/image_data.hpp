// Batches of labelled images: scikit-learn's digits as CSV, or a folder of MNIST's IDX files, held in memory as bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/batch_hash.hpp"
#include "runtime/data.hpp"

namespace tandem {

struct Images {
  std::string name;                  // for messages
  std::int64_t pixels = 0;           // an image
  std::int64_t classes = 0;          // labels are below
  float brightest = 1;               // the value that becomes 1.0
  std::vector<unsigned char> bytes;  // one a pixel, image after image
  std::vector<unsigned char> labels;
};

// Both throw ConfigError, naming the place in the file, for anything malformed.
Images read_digits(const std::string& path, const Scenario& scenario);
Images read_idx(const std::string& folder, const Scenario& scenario);

class ImageData final : public DataSource {
 public:
  // Throws ConfigError if workload.inputs or workload.classes do not match the images, or validation leaves none.
  // `saved`: what the checkpoint that the run goes on from says.
  ImageData(Images images, const Scenario& scenario, const SavedData& saved);
  SavedData saved() const override { return {order_.by_micro_batch, "", checksum_}; }
  void next_token_batch(BatchKey key, std::int64_t batch, std::int64_t sequence, std::int64_t* inputs,
                        std::int64_t* targets) const override;
  void masked_token_batch(BatchKey key, std::int64_t batch, std::int64_t sequence, std::int64_t vocabulary,
                          std::int64_t* inputs, std::int64_t* targets) const override;
  void image_batch(BatchKey key, std::int64_t batch, std::int64_t inputs, float* images,
                   std::int64_t* labels) const override;

 private:
  Images images_;
  SampleOrder order_;
  std::string checksum_;  // where the run saves, or goes on
  std::size_t training_;  // images; those after them are held out
};

}  // namespace tandem
