// A step's micro-batches shared by the device and the CPU: the last ones are computed on the CPU, forward and backward.
// Each side sums its gradients in the order of its micro-batches; then both sums are added.
#pragma once

#include <cstdint>
#include <memory>

#include "core/graph/rewrite.hpp"

namespace tandem {

// What the policy decides: it holds from the next step on that is appended.
struct CpuShare {
  std::int64_t micro_batches = 0;  // of a step, fewer than it has
};

std::shared_ptr<const Rewrite> split_batch(std::shared_ptr<const CpuShare> share);

}  // namespace tandem
