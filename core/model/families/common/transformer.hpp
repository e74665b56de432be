// Sizes that the transformer families share.
#pragma once

#include <cstdint>
#include <vector>

#include "core/scenario/family_keys.hpp"
#include "core/scenario/scenario.hpp"

namespace tandem {

struct TransformerSizes {
  std::int64_t batch = 1, sequence = 0, hidden = 0, heads = 0, vocabulary = 0, layers = 0, micro_batches = 1;
  std::int64_t vocabulary_padding = 0;  // rows of the output layer behind the vocabulary's
  std::int64_t loss_tiles = 1;
  std::int64_t feed_forward = 0;  // width of that layer; 0: four times hidden
  bool tied = true;
  bool fused = true;  // attention: no scores in memory
  DType type = DType::F32;

  std::int64_t tokens() const { return batch * sequence; }
  // Of the embedding, which has the output layer's rows where it is one with it.
  std::int64_t embedding_padding() const { return tied ? vocabulary_padding : 0; }
  std::int64_t width() const { return feed_forward > 0 ? feed_forward : 4 * hidden; }
  // Bytes of a [tokens, columns] tensor in the network's precision.
  std::int64_t rows(std::int64_t columns) const { return tokens() * columns * size_of(type); }
};

// The keys of a stack of blocks over tokens, and the shared ones that it takes.
const std::vector<FamilyKey>& transformer_keys();
FamilyKey vocabulary_key();
FamilyKey vocabulary_multiple_key();
// Rows that make a vocabulary such a multiple: as the key says, none where it is not there.
std::int64_t vocabulary_padding(const KeyValues& keys);
FamilyKey sequence_key();
FamilyKey layers_key();
FamilyKey loss_tiles_key();
FamilyKey dropout_key();
// Reads and checks them; throws ConfigError.
TransformerSizes transformer_sizes(const WorkloadOptions& options);
// loss_tiles are no more than the tokens.
void require_tiles(const TransformerSizes& s);

}  // namespace tandem
