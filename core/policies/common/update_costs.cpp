#include "core/policies/common/update_costs.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "core/machine/slow_down.hpp"

namespace tandem {
namespace {

constexpr double kNsPerS = 1e9;

}  // namespace

double UpdateCosts::device_share(double cpu_later_ns) const {
  const double cpu_alone_ns = cpu_later_ns + cpu_ns - upload_ns;  // by so much it ends later, with all of the update
  if (cpu_alone_ns <= 0) return 0;
  const double gain_ns = cpu_ns + stream_ns - upload_ns;  // by so much sooner beside the bus, without any of it
  return gain_ns > cpu_alone_ns ? cpu_alone_ns / gain_ns : 1;
}

UpdateCosts update_costs(const Graph& graph, const CostModel& estimate, const Op& optimizer) {
  CHECK(optimizer.phase == Phase::OptimizerStep, graph.label(optimizer.label), name_of(optimizer.phase));
  std::int64_t states = 0, parameter = 0;
  for (const Write& write : optimizer.writes)
    (graph.tensor_of(write.value).role == Role::OptimizerState ? states : parameter) += graph.value(write.value).bytes;
  return {static_cast<double>(estimate.copy_ns(Engine::H2D, states)),
          static_cast<double>(estimate.copy_ns(Engine::H2D, parameter)),
          static_cast<double>(estimate.run_ns(graph, optimizer.work, Engine::CpuOptimizer)),
          static_cast<double>(estimate.run_ns(graph, optimizer.work, Engine::Compute)),
          static_cast<double>(states),
          static_cast<double>(parameter),
          static_cast<double>(CostModel::memory_bytes(graph.work(optimizer.work)))};
}

UpdateCosts update_costs_together(const Graph& graph, const CostModel& estimate, const Op& optimizer) {
  UpdateCosts costs = update_costs(graph, estimate, optimizer);
  if (costs.cpu_ns <= 0) return costs;
  const HardwareProfile& profile = estimate.profile();
  const MemoryRates alone = memory_rates_alone(profile, costs.cpu_bytes / costs.cpu_ns * kNsPerS);
  const auto busy =
      static_cast<std::uint16_t>(engine_bit(Engine::CpuOptimizer) | engine_bit(Engine::H2D) | engine_bit(Engine::D2H));
  const auto factors = slow_downs(profile, alone, busy);
  const double up = factors[static_cast<std::size_t>(Engine::H2D)];
  costs.stream_ns *= up;
  costs.upload_ns *= up;
  costs.cpu_ns *= factors[static_cast<std::size_t>(Engine::CpuOptimizer)];
  return costs;
}

void for_updates(const Graph& graph, const CostModel& estimate, const std::function<void(const UpdateCosts&)>& each) {
  for (OpId id = graph.era().first_op; id < graph.op_count(); ++id)
    if (const Op& op = graph.op(id); op.phase == Phase::OptimizerStep && graph.in_first_step(op))
      each(update_costs(graph, estimate, op));
}

std::int64_t shared_updates_ns(const Graph& step, const CostModel& estimate, std::int32_t resident) {
  double cpu_ns = 0, bus_ns = 0, dram_bytes = 0;
  for_updates(step, estimate, [&](const UpdateCosts& costs) {
    if (--resident >= 0) return;
    const double share = costs.device_share();
    CHECK(share >= 0 && share <= 1, share, costs.cpu_ns, costs.upload_ns, costs.stream_ns);
    cpu_ns += (1 - share) * costs.cpu_ns;
    bus_ns += (1 - share) * costs.upload_ns + share * costs.stream_ns;  // the longer one where all is the CPU's
    dram_bytes += share * 2 * costs.state_bytes + (1 - share) * (costs.cpu_bytes + 2 * costs.parameter_bytes);
  });
  const double rate = estimate.profile().tiers[static_cast<std::size_t>(Tier::HostPinned)].bytes_per_s;
  const double dram_ns = rate > 0 ? dram_bytes / rate * kNsPerS : 0;
  return static_cast<std::int64_t>(std::max({cpu_ns, bus_ns, dram_ns}));
}

}  // namespace tandem
