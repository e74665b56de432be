#include "core/policies/common/update_costs.hpp"

#include <algorithm>

namespace tandem {

double UpdateCosts::device_share() const {
  const double left_ns = std::max(cpu_ns - upload_ns, 0.0);
  return left_ns > 0 ? left_ns / (left_ns + stream_ns) : 0;
}

UpdateCosts update_costs(const Graph& graph, const CostModel& estimate, const Op& optimizer) {
  std::int64_t states = 0, parameter = 0;
  for (const Write& write : optimizer.writes)
    (graph.tensor_of(write.value).role == Role::OptimizerState ? states : parameter) += graph.value(write.value).bytes;
  const std::int64_t on_cpu = CostModel::memory_bytes(graph.work(optimizer.work));
  return {static_cast<double>(estimate.copy_ns(Engine::H2D, states)),
          static_cast<double>(estimate.copy_ns(Engine::H2D, parameter)),
          static_cast<double>(estimate.run_ns(graph, optimizer.work, Engine::CpuOptimizer)),
          static_cast<double>(estimate.run_ns(graph, optimizer.work, Engine::Compute)),
          static_cast<double>(2 * states),
          static_cast<double>(on_cpu + 2 * parameter)};
}

void for_updates(const Graph& graph, const CostModel& estimate, const std::function<void(const UpdateCosts&)>& each) {
  for (OpId id = 0; id < graph.op_count(); ++id)
    if (const Op& op = graph.op(id); op.phase == Phase::OptimizerStep && op.step == 0)
      each(update_costs(graph, estimate, op));
}

std::int64_t shared_updates_ns(const Graph& step, const CostModel& estimate, std::int32_t resident) {
  constexpr double kNsPerS = 1e9;
  double time = 0, dram_bytes = 0;
  for_updates(step, estimate, [&](const UpdateCosts& costs) {
    if (--resident >= 0) return;
    const double share = costs.device_share();
    time += (1 - share) * costs.cpu_ns;
    dram_bytes += share * costs.dram_bytes_streamed + (1 - share) * costs.dram_bytes_on_cpu;
  });
  const double rate = estimate.profile().tiers[static_cast<std::size_t>(Tier::HostPinned)].bytes_per_s;
  return static_cast<std::int64_t>(rate > 0 ? std::max(time, dram_bytes / rate * kNsPerS) : time);
}

}  // namespace tandem
