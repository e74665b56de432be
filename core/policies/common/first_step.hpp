// The graph of a scenario's first training step, built to be estimated before a run, for any choice of what blocks
// save. Must not know policies.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/graph/graph.hpp"
#include "core/scenario/scenario.hpp"
#include "core/transforms/recompute/recompute.hpp"

namespace tandem {

// Micro-batches of that step, at most: those after the second are like the second.
inline constexpr std::int64_t kFirstStepMicroBatches = 2;

Graph first_step(Scenario scenario, std::optional<BlockActivations> choice);

// Throws ConfigError where the step updates nothing: for a policy that lays out all it moves by its updates.
void require_updates(const Graph& step, const Scenario& scenario);

// Layers that can be recomputed, in forward order.
std::vector<std::int32_t> blocks_of(const Scenario& scenario);

// The first so many of them.
std::vector<std::int32_t> first_blocks(const std::vector<std::int32_t>& blocks, std::int64_t count);

}  // namespace tandem
