// What modules cost in a training step, from its graph and the machine's profile: flops, bytes, times on either
// processor, what would cross the bus, memory. Must not know schedules or what a policy did.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "analysis/module_groups.hpp"
#include "core/machine/cost_model.hpp"

namespace tandem {

// Of a step's ops on one processor, alone on it.
struct ProcessorTime {
  double seconds = 0;
  double measured_s = 0;  // of ops that the profile has a row of (`ops:`)
  double fitted_s = 0;    // of others whose body it has (`bodies:`)
  // "measured", "fitted", "modelled"; "mixed" where none of them has nine tenths.
  std::string_view evidence() const;
};

// A step's, of all modules of a group together, over all micro-batches.
struct GroupCosts {
  double forward_flops = 0, backward_flops = 0, recompute_flops = 0;
  double forward_bytes = 0, backward_bytes = 0, recompute_bytes = 0;  // least traffic of their kernels
  ProcessorTime device, cpu;                                          // of forward, recompute and backward
  // If the group stood on the other side than all other modules: activations, gradients and shared weights that its
  // modules read of others', and others of its.
  std::int64_t in_bytes = 0, out_bytes = 0;
  std::int64_t crossings = 0;  // values that cross
  double transfer_s = 0;       // in and out, one after the other
  std::int64_t parameter_bytes = 0, gradient_bytes = 0, state_bytes = 0;
  std::int64_t activation_bytes = 0;  // saved by a micro-batch's forward for its backward
  double flops() const { return forward_flops + backward_flops + recompute_flops; }
  double bytes() const { return forward_bytes + backward_bytes + recompute_bytes; }
  double intensity() const { return bytes() > 0 ? flops() / bytes() : 0; }  // flops a byte
  std::int64_t memory_bytes() const { return parameter_bytes + gradient_bytes + state_bytes + activation_bytes; }
};

// By group. `step`: a training step that the graph holds; the second has what is in the steady state.
std::vector<GroupCosts> costs_of(const Graph& graph, std::int32_t step, const Network& network,
                                 const std::vector<ModuleGroup>& groups, const CostModel& cost);

// By group: seconds on the device of modules that neither lead to it nor follow from it, so that both could run at
// once.
std::vector<double> independent_s(const Network& network, const std::vector<ModuleGroup>& groups,
                                  const std::vector<GroupCosts>& costs);

}  // namespace tandem
