// What a step takes of the device's memory, estimated from its graph if each op runs as soon as the one before it has.
// Must not know policies.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/graph/graph.hpp"

namespace tandem {

// What of the optimizer's states and of the parameters is on the device.
struct StatesOnDevice {
  std::int32_t resident = 0;  // layers below it keep theirs there, and are updated as soon as their gradient is final
  std::int64_t streamed = 0;  // of the others, so many in a row at a time
  // The others' parameters live on the host, so many at a time on the device, and their gradients leave when they are
  // final. None: parameters that are 16 bits wide stay on the device if they fit, and gradients until the end.
  std::optional<std::int64_t> buffers = {};
  // The others' gradients leave when they are final, wherever their parameters are.
  bool gradients_leave = false;
};

// What a backward reads of what forwards wrote, itself or by an op that makes it what it was (Phase::Gather).
std::vector<ValueId> saved_for(const Graph& graph, const Op& backward);

// Most bytes that a step's activations, gradients and workspaces take at once, without what `offloaded_layers` save
// between forward and backward (in order). Gradients of resident layers go when they are final, unless their norm is
// wanted first; all others are there until the end, or leave once final and summed up. `graph` holds one step.
std::int64_t activation_peak(const Graph& graph, const std::vector<std::int32_t>& offloaded_layers,
                             std::int32_t resident = 0, bool others_leave = false);

// By op, what is on the device while it runs, but for model data (parameters, gradients, optimizer states):
// activations, batches and the op's workspace. 0 for loads.
std::vector<std::int64_t> non_model_bytes(const Graph& graph, const std::vector<std::int32_t>& offloaded_layers);

// Most bytes at once of that, of parameters until the last forward or backward that reads them, and of gradients until
// the end: where all of them stay on the device between the updates.
std::int64_t peak_with_parameters_and_gradients(const Graph& graph, const std::vector<std::int32_t>& offloaded_layers);

// Free bytes lie in holes, and the largest value of a step needs one to itself. That half of its size goes to waste is
// a matter of experience: with a third, some simulated steps of a 1.4 billion parameter model had to evict.
std::int64_t lost_in_holes(const Graph& graph);

// What a device of so many bytes has left beside that, parameters and states; below 0: a step does not fit.
std::int64_t bytes_left(const Graph& graph, std::int64_t capacity_bytes,
                        const std::vector<std::int32_t>& offloaded_layers, StatesOnDevice states);

// The most buffers, up to one for each layer that is not resident, in which the largest of those layers' parameters fit
// beside all else; none if not even all else fits.
std::optional<std::int64_t> most_buffers(const Graph& graph, std::int64_t capacity_bytes,
                                         const std::vector<std::int32_t>& offloaded_layers, std::int32_t resident);

// The same with all parameters and states on the device, updated after the last backward.
std::int64_t bytes_left_beside_states(const Graph& graph, std::int64_t capacity_bytes,
                                      const std::vector<std::int32_t>& offloaded_layers);

// The most layers whose states fit on the device beside all else; 0 if none does.
std::int32_t most_resident(const Graph& graph, std::int64_t capacity_bytes,
                           const std::vector<std::int32_t>& offloaded_layers, std::int64_t streamed,
                           bool gradients_leave = false);

}  // namespace tandem
