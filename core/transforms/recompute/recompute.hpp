// Which stages of a plan make again what they save for their backward, and in which segments. Must not know how steps
// are built.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "core/graph/rewrite.hpp"
#include "core/scenario/scenario.hpp"

namespace tandem {

// What becomes of what blocks save for their backward: the first `offload` blocks' is kept by the graph and moved by
// the policy, the next `recompute` blocks' is computed again, the rest is kept.
struct BlockActivations {
  std::int64_t offload = 0, recompute = 0;
};

// Of all blocks, by the scenario alone: of some micro-batches, or of all.
bool recomputes_blocks(const WorkloadOptions& workload);
// As chosen, whatever the scenario says. `every`: blocks in a row of which the first's input alone is kept, if they
// recompute.
std::shared_ptr<const Rewrite> recompute_blocks(const BlockActivations& choice, std::int64_t every = 1);
// None without a choice: as the scenario says.
Rewrites rewrites_of(const std::optional<BlockActivations>& choice, std::int64_t every);

}  // namespace tandem
