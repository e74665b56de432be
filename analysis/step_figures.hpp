// What the finished ops of one training step say of it, gathered op by op, so that a report of a whole run and a log
// that is written while it runs have the same numbers. Must not know formats or worlds.
#pragma once

#include <cstdint>
#include <optional>

#include "core/graph/graph.hpp"
#include "core/scheduler/seam.hpp"

namespace tandem {

// Of all gradients of a step: what its update asks for where it clips, or scales the loss.
inline bool is_gradient_norm(const Op& op) { return op.has_result && op.phase == Phase::Reduce && op.layer == kNone; }

class StepFigures {
 public:
  // A command that ran `op`, or a part of it, on `engine` has finished.
  void take(const Op& op, Engine engine, std::int64_t result, TimeNs finished);

  // Of the step's last command on the compute lanes, the CPU's among them, and of its evaluation's; -1: none.
  std::int64_t end_ns() const { return end_ns_; }
  std::int64_t evaluation_end_ns() const { return evaluation_end_ns_; }
  // Means over what was taken: micro-batches, and ranks where there are several.
  std::optional<double> loss() const { return loss_.mean(); }
  std::optional<double> validation_loss() const { return validation_loss_.mean(); }
  // Before clipping, and without fp16's loss scale: not finite where the step was skipped. None where no update asks.
  std::optional<double> gradient_norm() const { return norm_.mean(); }

 private:
  struct Mean {
    double sum = 0;
    int count = 0;
    void take(double x) { sum += x, ++count; }
    std::optional<double> mean() const { return count > 0 ? std::optional(sum / count) : std::nullopt; }
  };
  std::int64_t end_ns_ = -1, evaluation_end_ns_ = -1;
  Mean loss_, validation_loss_, norm_;
};

}  // namespace tandem
