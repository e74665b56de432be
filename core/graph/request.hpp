// What a policy asks of the graph that it is given: rewrites that change what is computed, or when results are used.
// Must not know families or policies.
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/ids.hpp"

namespace tandem {

// What becomes of what blocks save for their backward: the first `offload` blocks' is kept by the graph and moved by
// the policy, the next `recompute` blocks' is computed again, the rest is kept.
struct BlockActivations {
  std::int64_t offload = 0, recompute = 0;
};

// Adam in a learned subspace (LSP-Offload): core/workloads/common/subspace.hpp has the method.
struct SubspaceUpdate {
  std::int64_t rank = 0, nonzeros = 0;  // d and r of the paper: sizes of a compressed matrix, non-zeros a row
  std::int64_t check_every = 0;         // steps from one look at the projectors to the next
  double threshold = 0;                 // they are fitted again where the relative bias is above it
  bool masters = true;                  // bf16 parameters keep the rest of their fp32 masters
};

// Adam whose momentum travels as signs (1-bit Adam): core/formats/one_bit.hpp has the method.
struct OneBitUpdate {
  std::int64_t warmup_steps = 0;  // of plain Adam, at least 1
  std::int64_t block = 0;         // numbers that share a scale, a multiple of 32
  bool error_feedback = true;     // what was not sent is added to what is sent next
};

// What a policy asks of the graph: rewrites that change what is computed or when results are used. And whose graph it
// is.
struct GraphRequest {
  bool delayed_update = false;      // forward and backward of step s read the parameters from before step s-1's update
  bool fp32_gradients = false;      // 16-bit gradients are widened, once they are final, for the update
  bool streams_parameters = false;  // they are on the device near their use alone: so are those that ranks gather
  std::optional<BlockActivations> activations = {};  // none: as workload.recompute says
  std::optional<SubspaceUpdate> subspace = {};       // none: each parameter is updated by its own gradient
  std::optional<OneBitUpdate> one_bit = {};          // none: gradients travel
  Rank rank = 0;                                     // the first saves for all

  // Training gives other losses than plain training does.
  bool approximate() const { return delayed_update || subspace || one_bit; }
};

}  // namespace tandem
