// How long forward and backward really take on a processor, over what the estimates say: learnt from when a policy sees
// its ops finish. Must not know what it is asked for.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "core/scheduler/policy.hpp"

namespace tandem {

class MeasuredPasses {
 public:
  explicit MeasuredPasses(Engine engine) : engine_(engine) {}

  // Takes in what was appended, and what has finished, since the last call: after each batch of events.
  void follow(const View& view);
  // None until a step has been seen.
  std::optional<double> over_estimate() const { return over_estimate_; }

 private:
  void finish(const View& view, OpId op);
  void end_step();

  Engine engine_;
  OpId seen_ = 0;
  std::deque<OpId> to_come_;  // in the graph's order
  // Of the step in hand: from its first op's end to that of the last one seen, and what these ops would take.
  std::int32_t step_ = -1;
  std::int64_t begin_ns_ = 0, end_ns_ = 0, estimated_ns_ = 0;
  std::optional<double> over_estimate_;
};

}  // namespace tandem
