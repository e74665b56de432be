// Layers' tensors packed into chunks of one size, in forward order (after PatrickStar, arXiv 2108.05818: its chunks and
// its search for their size). Pure arithmetic; must not know where chunks are.
#pragma once

#include <cstdint>
#include <vector>

namespace tandem {

struct EqualChunks {
  std::int64_t elements = 0;           // of a chunk, filled or not
  std::vector<std::int32_t> of_layer;  // by layer: its chunk, in ascending order
  std::int32_t count() const { return of_layer.empty() ? 0 : of_layer.back() + 1; }
};

// As many layers a chunk as fit whole, one after another. `chunk_elements` is raised to the largest layer's.
EqualChunks pack_chunks(const std::vector<std::int64_t>& layer_elements, std::int64_t chunk_elements);

// With the size, from that of the largest layer to twice as much, whose chunks take least together; of equals the
// smallest.
EqualChunks pack_chunks(const std::vector<std::int64_t>& layer_elements);

}  // namespace tandem
