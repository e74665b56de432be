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
};

}  // namespace tandem
