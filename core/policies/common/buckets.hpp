// The buckets of each training step, in forward order: what updates them, and the values that travel for an update.
// Helps policies follow a growing graph; decides nothing.
#pragma once

#include <vector>

#include "core/graph/graph.hpp"

namespace tandem {

struct Bucket {
  std::int32_t step = 0;
  std::int32_t index = 0;  // in forward order
  OpId optimizer = kNone;
  ValueId gradient = kNone;       // the version that the update reads
  ValueId parameter = kNone;      // the version that the update writes and later forwards read
  ValueId old_parameter = kNone;  // the version before
};

class Buckets {
 public:
  // Takes in ops that were appended since the last call.
  void follow(const Graph& graph);
  // Buckets of a step; empty if the step is not appended yet.
  const std::vector<Bucket>& step(std::int32_t step) const;
  std::int32_t step_count() const { return static_cast<std::int32_t>(steps_.size()); }

 private:
  std::vector<std::vector<Bucket>> steps_;
  OpId seen_ = 0;
};

}  // namespace tandem
