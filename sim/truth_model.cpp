#include "sim/truth_model.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/check.hpp"
#include "core/machine/lane_time.hpp"
#include "core/machine/lanes.hpp"
#include "core/machine/slow_down.hpp"
#include "sim/noise.hpp"

namespace tandem {
namespace {

constexpr double kNsPerS = 1e9;
// A flow slower than this loads nothing that other flows would notice, and would fall below SimGrid's precision.
constexpr double kLeastBytesPerS = 1e6;

std::int64_t scaled_ns(std::int64_t ns, double factor) {
  return factor == 1 ? ns : std::llround(static_cast<double>(ns) * factor);
}

double bytes_per_s(const HardwareProfile& profile, Tier tier) {
  return profile.tiers[static_cast<std::size_t>(tier)].bytes_per_s;
}

bool is_disk(Engine lane) { return lane == Engine::DiskRead || lane == Engine::DiskWrite; }
bool is_small(Engine lane) { return lane == Engine::H2DSmall || lane == Engine::D2HSmall; }

// All that moves bytes but kernels, whose memory is the device's.
bool uses_host_memory(Engine lane) {
  return lane != Engine::Compute && lane != Engine::P2P && lane != Engine::Collective;
}

}  // namespace

double disk_bytes_per_s(const HardwareProfile& truth) {
  const double together = bytes_per_s(truth, Tier::Disk);
  return together > 0 ? together : std::max(truth.disk_read.bytes_per_s, truth.disk_write.bytes_per_s);
}

TruthModel::TruthModel(const Graph& graph, const HardwareProfile& truth, const Truth& factors, std::uint64_t seed,
                       Fidelity fidelity, Rank rank)
    : graph_(&graph),
      profile_(&truth),
      factors_(factors),
      times_(factors),
      seed_(seed),
      fidelity_(fidelity),
      rank_(rank),
      cost_(truth) {
  for (const Straggler& straggler : factors.stragglers)
    if (straggler.rank == rank) slowness_ = straggler.factor;
  for (const auto& [pair, factor] : truth.interference)
    if (factor != 1) slowed_[static_cast<std::size_t>(pair.first)] = true;
  double wanted = 0;
  for (const auto& [engine, cores] : truth.lane_cores) wanted += cores;
  for (const auto& [engine, cores] : truth.lane_cores)
    if (cores > 0 && wanted > truth.cores) slowed_[static_cast<std::size_t>(engine)] = true;
  if (!truth.launches_beside.empty() || lane_count(truth, Engine::Compute) > 1)
    slowed_[static_cast<std::size_t>(Engine::Compute)] = true;
  for (int e = 0; e < kEngineCount; ++e)
    if (weighs_memory() && uses_host_memory(static_cast<Engine>(e))) slowed_[static_cast<std::size_t>(e)] = true;
}

std::array<double, kEngineCount> TruthModel::slow_downs(const std::array<Load, kLaneCount>& loads,
                                                        const BusyLanes& lanes) const {
  MemoryRates alone{};
  const std::uint16_t busy = lanes.kinds();
  if (weighs_memory())
    lanes.for_each([&](LaneIndex lane) {
      const Load& load = loads[lane.place()];
      if (load.flows() && uses_host_memory(lane.kind()) && load.route == Route::Memory)
        alone[static_cast<std::size_t>(lane.kind())] += load.amount / static_cast<double>(load.flow_ns) * kNsPerS;
    });
  std::array<double, kEngineCount> factors = tandem::slow_downs(*profile_, alone, busy);
  const Load& computes = loads[static_cast<std::size_t>(Engine::Compute)];
  if (computes.dispatch_ns > 0 && computes.flow_ns > 0)
    factors[static_cast<std::size_t>(Engine::Compute)] += later_starts(*profile_, factors, busy, computes.recorded) *
                                                          static_cast<double>(computes.dispatch_ns) /
                                                          static_cast<double>(computes.flow_ns);
  // Streams of kernels share the device.
  factors[static_cast<std::size_t>(Engine::Compute)] *= std::max(lanes.count(Engine::Compute), 1);
  return factors;
}

double TruthModel::noise(const PendingCommand& command) const {
  return noise_factor(factors_.noise, seed_, rank_, command.id);
}

double TruthModel::factor(const PendingCommand& command) const {
  const double times = noise(command) * slowness_;
  if (is_disk(command.kind())) return times_.copy_time * times_.disk_time * times;
  if (command.what == CommandKind::Copy) return times_.copy_time * times;
  if (command.kind() == Engine::CpuOptimizer) return times_.optimizer_time * times;
  if (command.kind() == Engine::Compute || command.kind() == Engine::CpuCompute) return times_.compute_time * times;
  return times;
}

void TruthModel::begin_step(std::int32_t step) {
  if (step <= step_ || factors_.drift.empty()) return;
  step_ = step;
  times_ = factors_;
  for (const Drift& drift : factors_.drift) {
    if (!drift.holds(step)) continue;
    times_.copy_time *= drift.times.copy_time;
    times_.compute_time *= drift.times.compute_time;
    times_.optimizer_time *= drift.times.optimizer_time;
    times_.disk_time *= drift.times.disk_time;
  }
}

double TruthModel::memory_bytes(WorkId work) const {
  const auto slot = static_cast<std::size_t>(work);
  if (slot >= memory_bytes_.size()) memory_bytes_.resize(static_cast<std::size_t>(graph_->work_count()), -1);
  if (memory_bytes_[slot] < 0) memory_bytes_[slot] = static_cast<double>(CostModel::memory_bytes(graph_->work(work)));
  return memory_bytes_[slot];
}

const TruthModel::OnDevice& TruthModel::on_device(WorkId work) const {
  const auto slot = static_cast<std::size_t>(work);
  if (slot >= on_device_.size()) on_device_.resize(static_cast<std::size_t>(graph_->work_count()));
  std::optional<OnDevice>& found = on_device_[slot];
  if (!found) {
    const CostModel::Launching of = cost_.launching(*graph_, work);
    found = {of.dispatch_ns, of.repeat_ns, of.record_ns, of.late_ns, cost_.activity(graph_->work(work))};
  }
  return *found;
}

std::int64_t TruthModel::late_ns(WorkId work, double launching_ns) const {
  const OnDevice& op = on_device(work);
  if (launching_ns <= 0 || op.dispatch_ns == 0) return 0;
  return std::llround(slowness_ * static_cast<double>(op.late_ns) * launching_ns / static_cast<double>(op.dispatch_ns));
}

// The memory that an engine's traffic goes to, in bytes/s; 0 where it is not modelled.
double TruthModel::capacity(Engine engine) const {
  if (fidelity_ == Fidelity::Alone) return 0;
  switch (engine) {
    case Engine::Compute:
      return bytes_per_s(*profile_, Tier::Device);
    case Engine::CpuCompute:
    case Engine::CpuOptimizer:
    case Engine::Loader:
      return bytes_per_s(*profile_, Tier::HostPinned);
    default:
      return 0;
  }
}

Load TruthModel::flow(std::int64_t ns, double bytes, Route route, Engine engine) const {
  const bool slowed = slowed_by_others(engine);
  if (ns == 0 || (route == Route::Own && !slowed)) return {ns, 0, 0, Route::Own};
  if (bytes * kNsPerS < kLeastBytesPerS * static_cast<double>(ns)) route = Route::Own;
  if (route != Route::Own) return {0, ns, bytes, route};
  if (!slowed) return {ns, 0, 0, Route::Own};
  return {0, ns, static_cast<double>(ns), Route::Own};  // on its own lane the unit is of no account
}

double TruthModel::share_of(const PendingCommand& command) const {
  const Op& op = graph_->op(command.op);
  if (op.writes.empty() || command.part.bytes == 0) return 1;
  const auto whole = static_cast<double>(graph_->value(op.writes.front().value).bytes);
  return static_cast<double>(command.part.bytes) / whole;
}

Load TruthModel::run_load(const PendingCommand& command, double stretch) const {
  const Op& op = graph_->op(command.op);
  const std::int64_t whole_bytes = op.writes.empty() ? 0 : graph_->value(op.writes.front().value).bytes;
  const std::int64_t part_bytes = command.part.bytes == 0 ? whole_bytes : command.part.bytes;
  double times = factor(command);
  if (stretch != 1) times *= 1 + on_device(op.work).activity.clocked * (stretch - 1);
  const std::int64_t ns =
      scaled_ns(command.recorded ? cost_.repeated_run_ns(*graph_, op.work)
                                 : cost_.run_part_ns(*graph_, op.work, command.kind(), part_bytes, whole_bytes),
                times);
  const double limit = capacity(command.kind());
  if (limit == 0) return flow(ns, 0, Route::Own, command.kind());
  // What was measured alone fits the memory, whatever the profile's bandwidth says.
  const double bytes = std::min(memory_bytes(op.work) * share_of(command), limit / kNsPerS * static_cast<double>(ns));
  // Kernels share the device's memory with copies alone: where all fit at full speed there is nothing to share.
  const double copies = profile_->h2d.bytes_per_s + profile_->d2h.bytes_per_s;
  if (profile_->one_pool && command.kind() == Engine::Compute) return flow(ns, bytes, Route::Host, command.kind());
  const bool device_has_room =
      command.kind() == Engine::Compute && bytes * kNsPerS <= (limit - copies) * static_cast<double>(ns);
  return flow(ns, bytes, device_has_room ? Route::Own : Route::Memory, command.kind());
}

// Whether the lane's copies can meet a limit that others share.
bool TruthModel::link_binds(Engine lane) const {
  if (is_disk(lane)) return true;
  return profile_->pcie_bytes_per_s > 0 &&
         profile_->pcie_bytes_per_s < profile_->h2d.bytes_per_s + profile_->d2h.bytes_per_s;
}

Load TruthModel::copy_load(const PendingCommand& command) const {
  const double times = factor(command);
  const std::int64_t alone_ns = cost_.copy_ns(command.kind(), command.part.bytes, command.pageable);
  if (command.kind() == Engine::Compute) return flow(scaled_ns(alone_ns, times), 0, Route::Own, command.kind());
  const std::int64_t latency_ns = cost_.copy_rate(command.kind(), command.pageable).latency_ns;
  const std::int64_t all_ns = scaled_ns(alone_ns, times);
  Route route = Route::Own;
  if (command.kind() != Engine::P2P && !is_small(command.kind()))
    route = fidelity_ == Fidelity::Shared ? Route::Memory : link_binds(command.kind()) ? Route::Link : Route::Own;
  // The latency loads nothing. Deviations scale the bytes with the time, so that they hold under contention too.
  const std::int64_t waiting_ns = std::min(scaled_ns(latency_ns, times), all_ns);
  const std::int64_t flow_ns = all_ns - waiting_ns;
  double bytes = static_cast<double>(command.part.bytes) * times * lane_time(*profile_, command.kind());
  // Reads and writes that take turns at the disk share its time: what goes slower alone loads it more a byte.
  if (is_disk(command.kind()) && bytes_per_s(*profile_, Tier::Disk) == 0)
    bytes = disk_bytes_per_s(*profile_) / kNsPerS * static_cast<double>(flow_ns);
  Load load = flow(flow_ns, bytes, route, command.kind());
  load.fixed_ns += waiting_ns;
  return load;
}

Load TruthModel::load(const PendingCommand& command, double stretch) const {
  if (command.what == CommandKind::Copy) return copy_load(command);
  Load load = run_load(command, stretch);
  if (command.kind() == Engine::Compute) {
    load.dispatch_ns = on_device(graph_->op(command.op).work).dispatch_ns;
    load.recorded = command.recorded;
  }
  return load;
}

Load TruthModel::collective_load(const PendingCommand& command, double slowest) const {
  const WorkId work = graph_->op(command.op).work;
  CHECK(command.part.value == kNone, "ranks do an op together as a whole", graph_->op_name(command.op));
  return {scaled_ns(cost_.run_ns(*graph_, work, command.kind()), collective_times(command, slowest)), 0, 0, Route::Own};
}

}  // namespace tandem
