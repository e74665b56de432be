#include "core/policies/patrickstar/equal_chunks.hpp"

#include <algorithm>
#include <set>

#include "core/base/check.hpp"

namespace tandem {

EqualChunks pack_chunks(const std::vector<std::int64_t>& layer_elements, std::int64_t chunk_elements) {
  EqualChunks chunks{.elements = chunk_elements, .of_layer = {}};
  for (std::int64_t elements : layer_elements) chunks.elements = std::max(chunks.elements, elements);
  std::int32_t chunk = 0;
  std::int64_t filled = 0;
  for (std::int64_t elements : layer_elements) {
    if (filled + elements > chunks.elements) ++chunk, filled = 0;
    filled += elements;
    CHECK(elements >= 0 && filled <= chunks.elements, "a chunk is overfull", chunk, filled, chunks.elements);
    chunks.of_layer.push_back(chunk);
  }
  return chunks;
}

// A chunk that is best is full somewhere: its size is that of some layers in a row.
EqualChunks pack_chunks(const std::vector<std::int64_t>& layer_elements) {
  const std::int64_t least =
      layer_elements.empty() ? 0 : *std::max_element(layer_elements.begin(), layer_elements.end());
  std::set<std::int64_t> sizes{least};
  for (auto first = layer_elements.begin(); first != layer_elements.end(); ++first) {
    std::int64_t run = 0;
    for (auto next = first; next != layer_elements.end() && run + *next <= 2 * least; ++next)
      if ((run += *next) >= least) sizes.insert(run);
  }
  EqualChunks best;
  for (std::int64_t size : sizes)
    if (EqualChunks chunks = pack_chunks(layer_elements, size);
        best.of_layer.empty() || chunks.count() * chunks.elements < best.count() * best.elements)
      best = std::move(chunks);
  return best;
}

}  // namespace tandem
