// The buckets of each training step, in forward order: what updates them, and the values that travel for an update.
// Helps policies follow a growing graph; decides nothing.
#pragma once

#include <deque>
#include <map>
#include <vector>

#include "core/scheduler/policy.hpp"

namespace tandem {

struct Bucket {
  std::int32_t step = 0;
  std::int32_t index = 0;  // in forward order
  OpId optimizer = kNone;
  ValueId gradient = kNone;    // the version that the update reads
  OpId gradient_norm = kNone;  // the op that reads it before the update; kNone: there is none
  ValueId parameter = kNone;   // the version that the update writes and later forwards read; in a subspace, its change
  ValueId old_parameter = kNone;  // the version before
  bool reads_parameter = false;   // the update reads that: the parameter is its own master, or a half of it
};

class Buckets {
 public:
  // Takes in ops that were appended since the last call.
  void follow(const Graph& graph);
  // Buckets of a step; empty if the step is not appended yet, or long over.
  const std::vector<Bucket>& step(std::int32_t step) const;
  // Those of the first step that the policy sees, while they are kept.
  const std::vector<Bucket>& first() const { return step(begins_with_); }
  // Those of the latest step, which tell what any step's are like; empty where nothing is updated.
  const std::vector<Bucket>& latest() const { return step(step_count() - 1); }
  // The one that the op updates.
  const Bucket& of(const Graph& graph, OpId optimizer) const;
  std::int32_t step_count() const { return first_step_ + static_cast<std::int32_t>(steps_.size()); }

 private:
  static constexpr std::size_t kStepsKept = 16;  // the graph is a few ahead of the run, a delayed update a few behind
  std::deque<std::vector<Bucket>> steps_;        // from first_step_ on
  std::int32_t first_step_ = 0, begins_with_ = 0;
  std::map<ValueId, OpId> norms_;  // by gradient, of the step that is being appended
  OpId seen_ = 0;
};

// The bucket's gradient is final, and nothing on the device will read it but the update: it may leave.
bool gradient_may_leave(const View& view, const Bucket& bucket);
// It is where an update on the CPU finds it: in host memory, or on the disk if the host had no room to keep it.
bool gradient_has_left(const View& view, const Bucket& bucket);

}  // namespace tandem
