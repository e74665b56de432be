// What a scenario's limits, its ranks and its precision make of the machine. A rate that is none of the profile's was
// not measured, so that how far it is off is not known.
#include <algorithm>
#include <memory>
#include <utility>

#include "core/base/check.hpp"
#include "core/machine/measured_ops.hpp"
#include "core/scenario/build.hpp"
#include "core/scenario/capacity.hpp"

namespace tandem {
namespace {

// Threads of the optimizer's lane on so many cores: others than its own keep theirs.
double optimizer_threads(const HardwareProfile& machine, std::int32_t cores) {
  const auto wanted = machine.lane_cores.find(Engine::CpuOptimizer);
  const double all = wanted == machine.lane_cores.end() ? machine.cores : wanted->second;
  return std::max(1.0, all - (machine.cores - cores));
}

void scale_cpu_compute(HardwareProfile& machine, double share) {
  machine.cpu_flops *= share;
  if (!machine.cpu_compute) return;
  HardwareProfile team = *machine.cpu_compute;
  for (auto& [type, flops] : team.peak_flops) flops *= share;
  machine.cpu_compute = std::make_shared<const HardwareProfile>(std::move(team));
}

// On other numbers of cores than the team's that was timed.
void forget_ops_on_cpu(HardwareProfile& machine) {
  if (!machine.ops) return;
  MeasuredOps ops = *machine.ops;
  std::erase_if(ops.rows, [](const auto& row) { return row.first.on_cpu; });
  machine.ops = ops.rows.empty() ? nullptr : std::make_shared<const MeasuredOps>(std::move(ops));
}

// The optimizer's rate by threads where the profile has it: memory may serve a few threads as well as many. Else the
// CPU's rates are taken to scale with its cores, unless the profile says how many cores each lane wants: then the lanes
// share what is left.
void limit_cores(HardwareProfile& machine, std::int32_t cores) {
  if (cores <= 0 || cores >= machine.cores) return;
  forget_ops_on_cpu(machine);
  const double share = static_cast<double>(cores) / machine.cores;
  if (machine.lane_cores.empty()) scale_cpu_compute(machine, share);
  if (const Curve& by_threads = machine.cpu_optimizer_threads; !by_threads.x.empty()) {
    const double threads = optimizer_threads(machine, cores);
    machine.cpu_optimizer_parameters_per_s *=
        by_threads.at(threads) / by_threads.at(optimizer_threads(machine, machine.cores));
    if (machine.lane_cores.contains(Engine::CpuOptimizer)) machine.lane_cores[Engine::CpuOptimizer] = threads;
  } else if (machine.lane_cores.empty()) {
    machine.cpu_optimizer_parameters_per_s *= share;
    machine.uncertainty.erase(TimeCause::CpuOptimizer);
  }
  machine.cores = cores;
}

// A team of some of the cores is as much slower than one of all of them.
void split_cores(HardwareProfile& machine) {
  for (const auto& [kind, row] : machine.lanes) {
    if (row.cores <= 0 || row.cores >= machine.cores) continue;
    forget_ops_on_cpu(machine);
    const double share = static_cast<double>(row.cores) / optimizer_threads(machine, machine.cores);
    if (kind == Engine::CpuCompute) scale_cpu_compute(machine, std::min(1.0, share));
    if (kind == Engine::CpuOptimizer) {
      const Curve& by_threads = machine.cpu_optimizer_threads;
      machine.cpu_optimizer_parameters_per_s *=
          by_threads.x.empty() ? std::min(1.0, share)
                               : by_threads.at(row.cores) / by_threads.at(optimizer_threads(machine, machine.cores));
    }
  }
  for (const auto& [kind, row] : machine.lanes)
    if (row.cores > 0 && machine.lane_cores.contains(kind))
      machine.lane_cores[kind] = std::min(row.cores, machine.cores);
}

// No size is copied faster than the limit; small copies may be slower by themselves.
void limit_copies(HardwareProfile& machine, CopyRate& lane, double bytes_per_s) {
  if (bytes_per_s <= 0 || bytes_per_s >= lane.bytes_per_s) return;
  machine.uncertainty.erase(TimeCause::Copies);
  for (double& efficiency : lane.efficiency.y) efficiency = std::min(1.0, efficiency * lane.bytes_per_s / bytes_per_s);
  lane.bytes_per_s = bytes_per_s;
}

// Each rank has its share of the host, as each live rank is a process of its own: of its cores, of what they update,
// and of what all devices' links bring together.
void share_host(HardwareProfile& machine, std::int64_t ranks) {
  CHECK(ranks >= 1, ranks);
  if (ranks == 1) return;
  limit_cores(machine, static_cast<std::int32_t>(std::max<std::int64_t>(machine.cores / ranks, 1)));
  const double each_way = machine.host_copy_bytes_per_s / static_cast<double>(ranks);
  limit_copies(machine, machine.h2d, each_way);
  limit_copies(machine, machine.d2h, each_way);
}

}  // namespace

// Threads that read and decode, and those of another host. On its own cores, where the profile says what lanes take.
void staff_pipeline(const PipelineOptions& pipeline, HardwareProfile& machine) {
  if (!pipeline.given) return;
  machine.input_workers = std::min<std::int64_t>(pipeline.workers, machine.cores);
  machine.remote_workers = pipeline.remote_workers;
  machine.remote_bytes_per_s = pipeline.remote_bytes_per_s;
  if (!machine.lane_cores.empty()) machine.lane_cores[Engine::Loader] = static_cast<double>(machine.input_workers);
}

void apply_limits(Scenario& scenario) {
  HardwareProfile& machine = scenario.machine;
  // A precision without units of its own runs at fp32's rate.
  machine.peak_flops.emplace(scenario.workload.precision, machine.peak_flops[DType::F32]);
  limit_cores(machine, scenario.limits.cores);
  limit_copies(machine, machine.h2d, scenario.limits.h2d_bytes_per_s);
  limit_copies(machine, machine.d2h, scenario.limits.d2h_bytes_per_s);
  share_host(machine, ranks_on_host(scenario));
  split_cores(machine);
  staff_pipeline(scenario.pipeline, machine);
}

}  // namespace tandem
