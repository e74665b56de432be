// What updating buckets costs on either processor, by the estimates. Must not know which policy asks.
#pragma once

#include <cstdint>
#include <functional>

#include "core/graph/graph.hpp"
#include "core/machine/cost_model.hpp"

namespace tandem {

// One bucket's update.
struct UpdateCosts {
  double stream_ns = 0, upload_ns = 0, cpu_ns = 0, device_ns = 0, dram_bytes_streamed = 0, dram_bytes_on_cpu = 0;
  // The part of it with which the bus and the CPU take equally long: the states of the device's share come and go, and
  // the parameters of the CPU's go up.
  double device_share() const;
};
UpdateCosts update_costs(const Graph& graph, const CostModel& estimate, const Op& optimizer);

// Calls `each` for the buckets of the first step, in forward order.
void for_updates(const Graph& graph, const CostModel& estimate, const std::function<void(const UpdateCosts&)>& each);

// The least time of a step's updates that both processors share. The first so many buckets stay on the device and
// take none; the others take the CPU's time, or that of DRAM, which both sides share.
std::int64_t shared_updates_ns(const Graph& step, const CostModel& estimate, std::int32_t resident);

}  // namespace tandem
