// What blocks save for their backward: kept, recomputed, or offloaded to the host in between. The first blocks' have
// the longest way from forward to backward: they are offloaded, the next recomputed, the last kept (as ProTrain orders
// them: Yang et al., 2024, section 3.3). A part of policies that decide it; must not know which one.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "core/scheduler/policy.hpp"

namespace tandem {

// What a policy does with the device memory that a step's activations leave it.
struct MemoryUse {
  std::int64_t streamed = 0;  // buckets in a row whose optimizer states must fit beside the activations
  // The least time that a step's updates take if the first so many stay on the device. `step`: the graph of one step.
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

  const std::optional<BlockActivations>& choice() const { return choice_; }
  // Buckets whose states fit on the device beside that, by the same estimate; 0 without a `use`.
  std::int32_t resident() const { return resident_; }
  // True if by that estimate a step fits beside what `use` reserves, or without a `use`.
  bool fit() const { return fit_; }
  // Sends what is to leave, once its forward is issued, and brings it back ahead of its backward. To be called after
  // each op that is issued to the compute lane.
  void move(const View& view, Decisions& decisions);

 private:
  struct Trip {
    OpId forward = kNone, backward = kNone;
    std::vector<ValueId> values;
    bool left = false, returned = false;
  };
  void follow(const Graph& graph);
  void add_trip(const Graph& graph, OpId backward);

  std::optional<BlockActivations> choice_;
  std::int32_t resident_ = 0;
  bool fit_ = true;
  std::vector<std::int32_t> offloaded_layers_;
  std::deque<Trip> trips_;
  OpId seen_ = 0;
};

}  // namespace tandem
