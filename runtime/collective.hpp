// Collectives of this process with the other ranks, over c10d's Gloo on the loopback device. Calls are matched across
// ranks by their order, which is graph order on every rank. Must not know ops, arenas or lanes.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/graph/graph.hpp"

namespace tandem {

struct CollectiveOptions {
  Rank rank = 0;
  std::int32_t ranks = 1;
  std::string meeting_file;  // the same path for all ranks, of a file that did not exist before the run
  std::chrono::milliseconds timeout = std::chrono::minutes(5);  // for a peer that has stopped
};

class Collective {
 public:
  // Blocks until all ranks are there. Throws DeviceError.
  explicit Collective(const CollectiveOptions& options);
  ~Collective();

  // Replaces data by its mean over all ranks: the sum, then one division. Equal to the bit on all ranks.
  // Throws DeviceError, naming the rank, when a peer is lost.
  void all_reduce_mean(std::byte* data, std::int64_t elements, DType type);

 private:
  struct Group;
  CollectiveOptions options_;
  std::unique_ptr<Group> group_;
};

}  // namespace tandem
