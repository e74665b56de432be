// Fills a batch by what its load says (Work::body): the same numbers for training and for the reference. Must not know
// ops or networks.
#pragma once

#include <span>

#include "core/graph/graph.hpp"
#include "runtime/data.hpp"

namespace tandem {

struct BatchPlace {
  void* bytes = nullptr;
  DType type = DType::F32;
  std::int64_t elements = 0;
};

// A data source whose batches come as the network's own tensors, whatever they hold.
class TensorBatches {
 public:
  virtual ~TensorBatches() = default;
  // Tensor `index` of the network's batch. May be asked by several threads. Throws DeviceError where it is missing, or
  // has another size.
  virtual void read(BatchKey key, std::size_t index, const BatchPlace& place) const = 0;
};

// A source of nothing else: networks that ask for text or pictures read other data.
class TensorSource : public DataSource, public TensorBatches {
 public:
  void next_token_batch(BatchKey, std::int64_t, std::int64_t, std::int64_t*, std::int64_t*) const final;
  void masked_token_batch(BatchKey, std::int64_t, std::int64_t, std::int64_t, std::int64_t*, std::int64_t*) const final;
  void image_batch(BatchKey, std::int64_t, std::int64_t, float*, std::int64_t*) const final;
};

// `load`: next_tokens.load, with targets or without, and masked_tokens.load (sizes: batch, sequence, vocabulary),
// padded_tokens.load (the same, then of each text of all micro-batches how many tokens come before its own, which is
// the second tensor), images.load (batch, numbers of an image), synthetic.load (of each tensor what its integers are
// below, or 0), imported.load (the same, or -1 for a constant of the folder), imported_text.load (batch, sequence,
// vocabulary, and each constant's place in the folder). Throws DeviceError for a token that the vocabulary does not
// have.
void fill_batch(const Work& load, const Scenario& scenario, const DataSource& data, BatchKey key,
                std::span<const BatchPlace> places);

// Throws DeviceError for a token that the embedding has no row for: the data is not of this vocabulary.
void check_tokens(const std::int64_t* tokens, std::int64_t count, std::int64_t vocabulary);

}  // namespace tandem
