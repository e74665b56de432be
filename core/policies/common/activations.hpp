// What blocks save for their backward: kept, recomputed, or offloaded to the host in between. The first blocks' have
// the longest way from forward to backward: they are offloaded, the next recomputed, the last kept (as ProTrain orders
// them: Yang et al., 2024, section 3.3). A part of policies that decide it; must not know which one.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "core/scheduler/policy.hpp"

namespace tandem {

// What a policy does with the device memory that a step's activations leave it.
struct MemoryUse {
  std::int64_t buckets = 0;  // whose optimizer states must fit beside the activations
  // The least time that a step's updates take if so many bytes more are left over. `step`: the graph of one step.
  std::function<std::int64_t(const Graph& step, const CostModel& estimate, std::int64_t spare_bytes)> updates_ns;
};

class Activations {
 public:
  // Reads the options offload_blocks and recompute_blocks, whole numbers. Without either, and unless the scenario
  // itself asks for recomputation, as many blocks do not keep theirs (recomputed, or offloaded where the bus is
  // quicker) as make a step fit and the longer of its computing and its updates shortest. No `use`: nothing is chosen.
  explicit Activations(const Scenario& scenario, const MemoryUse* use = nullptr);

  const std::optional<BlockActivations>& choice() const { return choice_; }
  // Device memory that a step leaves over beside that, by the same estimate; 0 without a `use`.
  std::int64_t spare_bytes() const { return std::max<std::int64_t>(left_bytes_, 0); }
  // True if by that estimate a step fits beside what `use` reserves; without a `use`, nothing is reserved.
  bool fit() const { return left_bytes_ >= 0; }
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
  std::int64_t left_bytes_ = 0;  // of the device; below 0: it does not fit
  std::vector<std::int32_t> offloaded_layers_;
  std::deque<Trip> trips_;
  OpId seen_ = 0;
};

// Most bytes that a step's activations, gradients and workspaces take on the device at once, if each op runs as soon as
// the one before it has: an estimate of what a choice costs. `graph` holds one step.
std::int64_t activation_peak(const Graph& graph, const std::vector<std::int32_t>& offloaded_layers);

}  // namespace tandem
