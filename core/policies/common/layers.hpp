// What each layer's computing, moving and updating takes by the estimates, and how many layers' states fit on the
// device. A layer is a bucket. Must not know which policy asks.
#pragma once

#include <cstdint>
#include <vector>

#include "core/policies/common/buckets.hpp"
#include "core/scheduler/policy.hpp"

namespace tandem {

// Estimated durations of one layer in one micro-batch, in ns.
struct LayerTimes {
  std::int64_t forward_ns = 0;
  std::int64_t recompute_ns = 0;
  std::int64_t backward_ns = 0;
  std::int64_t gradient_copy_ns = 0;  // D2H
  std::int64_t cpu_update_ns = 0;
  std::int64_t device_update_ns = 0;
  std::int64_t parameter_copy_ns = 0;              // H2D
  std::int64_t saved_out_ns = 0, saved_in_ns = 0;  // of what its backward reads, if that leaves in between
};

// Those of the buckets of the first step, in forward order.
std::vector<LayerTimes> layer_times(const Graph& graph, const CostModel& estimate, const std::vector<Bucket>& buckets);
std::vector<LayerTimes> layer_times(const View& view, const std::vector<Bucket>& buckets);

// How many of the first buckets can be updated on the device beside one step's activations, with the parameters of the
// others streamed, if each takes `beside_each` bytes more.
std::size_t layers_that_fit(const View& view, const std::vector<Bucket>& buckets, std::int64_t beside_each = 0);

}  // namespace tandem
