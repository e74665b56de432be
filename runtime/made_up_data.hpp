// Batches of numbers that no data set gives, for networks whose data Tandem does not read yet: a sample's follow from
// the seed and its number in the step alone. Nothing can be learnt from them.
#pragma once

#include "runtime/batch_hash.hpp"
#include "runtime/data.hpp"

namespace tandem {

// A tensor of a batch, which holds so many samples.
struct MadeUpTensor {
  SampleOrder order;
  BatchKey key;
  std::int64_t samples = 1;
  std::int64_t tensor = 0;    // among those of the batch
  std::int64_t elements = 0;  // where no multiple of the samples: made as one sample
};
// Normal numbers.
void make_up(const MadeUpTensor& tensor, float* out);
// Integers of [0, below), all as likely.
void make_up(const MadeUpTensor& tensor, std::int64_t below, std::int64_t* out);

// Images of normal numbers, and classes.
class MadeUpData final : public DataSource {
 public:
  explicit MadeUpData(const Scenario& scenario);
  void next_token_batch(BatchKey key, std::int64_t batch, std::int64_t sequence, std::int64_t* inputs,
                        std::int64_t* targets) const override;
  void masked_token_batch(BatchKey key, std::int64_t batch, std::int64_t sequence, std::int64_t vocabulary,
                          std::int64_t* inputs, std::int64_t* targets) const override;
  void image_batch(BatchKey key, std::int64_t batch, std::int64_t inputs, float* images,
                   std::int64_t* labels) const override;
  std::string remark() const override;

 private:
  std::string family_;
  SampleOrder order_;
  std::int64_t classes_;
};

}  // namespace tandem
