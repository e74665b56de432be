// What a collective command needs of the other ranks. Calls are matched across ranks by their order, which is graph
// order on every rank. Must not know ops, arenas or lanes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/graph/graph.hpp"

namespace tandem {

class Collective {
 public:
  virtual ~Collective() = default;
  // Replaces data by its mean over all ranks: the sum, then one division. Equal to the bit on all ranks.
  // Throws DeviceError, naming the rank, when a peer is lost.
  virtual void all_reduce_mean(std::byte* data, std::int64_t elements, DType type) = 0;
  // The same, but by the sum.
  virtual void all_reduce_sum(std::byte* data, std::int64_t elements, DType type) = 0;
  // Rank r's `part` becomes the r-th part of the mean of `whole` over all ranks, each of `elements` elements: the same
  // bits as all_reduce_mean.
  virtual void reduce_scatter_mean(const std::byte* whole, std::byte* part, std::int64_t elements, DType type) = 0;
  // `whole` becomes all ranks' parts, of `bytes` each, one after another.
  virtual void all_gather(const std::byte* part, std::byte* whole, std::int64_t bytes) = 0;
};

}  // namespace tandem
