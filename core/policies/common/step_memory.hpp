// What a step takes of the device's memory, estimated from its graph if each op runs as soon as the one before it has.
// Must not know policies.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/graph.hpp"

namespace tandem {

// What of the optimizer's states is on the device.
struct StatesOnDevice {
  std::int32_t resident = 0;  // layers below it keep theirs there, and are updated as soon as their gradient is final
  std::int64_t streamed = 0;  // of the others, so many in a row at a time
};

// What a backward reads of what forwards wrote.
std::vector<ValueId> saved_for(const Graph& graph, const Op& backward);

// Most bytes that a step's activations, gradients and workspaces take at once, without what `offloaded_layers` save
// between forward and backward (in order). Gradients of resident layers go when they are final, unless their norm is
// wanted first; all others are there until the end. `graph` holds one step.
std::int64_t activation_peak(const Graph& graph, const std::vector<std::int32_t>& offloaded_layers,
                             std::int32_t resident = 0);

// What a device of so many bytes has left beside that, parameters and states; below 0: a step does not fit.
std::int64_t bytes_left(const Graph& graph, std::int64_t capacity_bytes,
                        const std::vector<std::int32_t>& offloaded_layers, StatesOnDevice states);

// The most layers whose states fit on the device beside all else; 0 if none does.
std::int32_t most_resident(const Graph& graph, std::int64_t capacity_bytes,
                           const std::vector<std::int32_t>& offloaded_layers, std::int64_t streamed);

}  // namespace tandem
