// What blocks save for their backward: kept, recomputed, or offloaded to the host or the disk in between. The first
// blocks' have the longest way from forward to backward: they are offloaded, the next recomputed, the last kept (as
// ProTrain orders them: Yang et al., 2024, section 3.3). A part of policies that decide it; must not know which one.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/policies/common/activation_trips.hpp"
#include "core/scheduler/policy.hpp"
#include "core/transforms/recompute/recompute.hpp"

namespace tandem {

// What a policy does with the device memory that a step's activations leave it.
struct MemoryUse {
  // Buckets in a row whose optimizer states must fit beside the activations; one or two fewer where gradients leave.
  std::int64_t streamed = 0;
  // What a step's updates take if the first so many stay on the device. `step`: the graph of one step.
  std::function<std::int64_t(const Graph& step, const CostModel& estimate, std::int32_t resident)> updates_ns;
};

// The options offload_blocks and recompute_blocks, whole numbers; nothing without either.
std::optional<BlockActivations> given_activations(const Scenario& scenario);

class Activations {
 public:
  // Takes the given choice. Without one, and unless the scenario itself asks for recomputation, as many blocks do not
  // keep theirs (recomputed, or offloaded where the bus is quicker) as make a step fit and the longer of its computing
  // and its updates shortest. No `use`: nothing is chosen.
  explicit Activations(const Scenario& scenario, const MemoryUse* use = nullptr);
  // Takes a choice that was made elsewhere.
  Activations(const Scenario& scenario, std::optional<BlockActivations> choice);

  // For a policy that keeps parameters and states on the device, and issues no more than two ops ahead. offload_blocks
  // may be `auto`, as it is if not given (but where the scenario itself asks for recomputation): as many as leave and
  // return without holding up the step, and at least as many as make it fit.
  Activations(const Scenario& scenario, Destination destination);

  const std::optional<BlockActivations>& choice() const { return choice_; }
  // What that makes of the graph; none without a choice, which leaves it to the scenario.
  Rewrites rewrites() const { return rewrites_of(choice_, segment_); }
  // `offload_blocks: 0` keeps activations on the device.
  std::vector<Binding> bindings() const { return bindings_; }
  // Buckets whose states fit on the device beside that, by the same estimate; 0 without a `use`.
  std::int32_t resident() const { return resident_; }
  // True if by that estimate a step fits beside what `use` reserves with all gradients on the device until the end, and
  // more resident buckets would not be worth having fewer gradients there; or without a `use`.
  bool fit() const { return fit_; }
  // As ActivationTrips' functions.
  void move(const View& view, Decisions& decisions) { trips_.move(view, decisions); }
  void make_room(const View& view, Decisions& decisions) { trips_.make_room(view, decisions); }

 private:
  std::optional<BlockActivations> choice_;
  std::int64_t segment_;  // blocks in a row of which the first's input alone is kept, if they recompute
  std::vector<Binding> bindings_;
  std::int32_t resident_ = 0;
  bool fit_ = true;
  ActivationTrips trips_;
};

}  // namespace tandem
