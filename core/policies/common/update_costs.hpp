// What updating buckets costs on either processor, by the estimates. Must not know which policy asks.
#pragma once

#include <cstdint>
#include <functional>

#include "core/graph/graph.hpp"
#include "core/machine/cost_model.hpp"

namespace tandem {

// One bucket's update.
struct UpdateCosts {
  double stream_ns = 0, upload_ns = 0, cpu_ns = 0, device_ns = 0;
  double state_bytes = 0, parameter_bytes = 0;
  double cpu_bytes = 0;  // of host memory that the CPU's update takes
  // The part of it with which the bus and the CPU end at the same time, which is soonest where states are no fewer
  // bytes than parameters: the states of the device's share come, and the parameters of the CPU's go up. None, or all
  // of it, where one side ends later all the same. `cpu_later_ns`: by so much the CPU begins later than the bus.
  double device_share(double cpu_later_ns = 0) const;
};
UpdateCosts update_costs(const Graph& graph, const CostModel& estimate, const Op& optimizer);
// The same while the CPU and copies both ways keep host memory and the bus busy.
UpdateCosts update_costs_together(const Graph& graph, const CostModel& estimate, const Op& optimizer);

// Calls `each` for the buckets of the first step, in forward order.
void for_updates(const Graph& graph, const CostModel& estimate, const std::function<void(const UpdateCosts&)>& each);

// The time of a step's updates that both processors share, each cut so that both sides end it at once. The first so
// many buckets stay on the device and take none; the others take the CPU's or the bus's time, whichever is longer, or
// that of DRAM, which both sides share. Other cuts can be quicker where buckets differ in what they gain from the
// device, or where DRAM binds: by up to a half on buckets of kilobytes (ExactChoices.SharedUpdates...).
std::int64_t shared_updates_ns(const Graph& step, const CostModel& estimate, std::int32_t resident);

}  // namespace tandem
