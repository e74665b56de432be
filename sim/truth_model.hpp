// What a command loads and for how long, on the machine as it really is: the cost model of the true profile, the
// scenario's deviations from it, and noise. Must not know SimGrid or what else is running.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/machine/cost_model.hpp"
#include "core/scenario/scenario.hpp"
#include "sim/busy_lanes.hpp"
#include "sim/command_queues.hpp"

namespace tandem {

// How much of the machine is shared.
enum class Fidelity : std::uint8_t {
  Alone,   // fixed durations; copies of a device share its PCIe cap, reads and writes of a disk share the disk
  Shared,  // and all traffic of a host shares its DRAM, kernels and copies share the device's memory
};

// The resources that a flow goes through.
enum class Route : std::uint8_t {
  Own,     // its lane alone
  Link,    // and the PCIe cap or the disk
  Memory,  // and DRAM, device memory or both
  Host,    // of kernels, where DRAM is the device's memory, too
};
inline constexpr int kRouteCount = 4;

// A command's work: first a fixed time, then, if amount > 0, a flow that takes flow_ns when nothing else is there.
struct Load {
  std::int64_t fixed_ns = 0;
  std::int64_t flow_ns = 0;
  double amount = 0;  // bytes on every resource of the route
  Route route = Route::Own;
  // Of an op on the compute lane: what launching its kernels takes alone, and whether they are started as a whole.
  std::int64_t dispatch_ns = 0;
  bool recorded = false;

  bool flows() const { return fixed_ns == 0 && amount > 0; }
};

// What the disk gives at most: to both directions together where the profile says so, else to the quicker one.
double disk_bytes_per_s(const HardwareProfile& truth);

// One rank's. The graph and the profile must outlive it.
class TruthModel {
 public:
  TruthModel(const Graph& graph, const HardwareProfile& truth, const Truth& factors, std::uint64_t seed,
             Fidelity fidelity, Rank rank);

  // `stretch`: of kernels that need the device's clock, which may be lower than its full one.
  Load load(const PendingCommand& command, double stretch = 1) const;
  // The training step that computes from now on: what has drifted follows it.
  void begin_step(std::int32_t step);
  // Of an op on the compute lane: what launching its kernels takes the submitting thread (BodyCost), and what keeps the
  // device busy.
  struct OnDevice {
    std::int64_t dispatch_ns = 0, repeat_ns = 0, record_ns = 0, late_ns = 0;
    CostModel::Activity activity;
  };
  const OnDevice& on_device(WorkId work) const;
  // What the op takes longer that begins so long before the last of its kernels is launched.
  std::int64_t late_ns(WorkId work, double launching_ns) const;
  // What ranks do together, of which the slowest takes `slowest` times as long (slowness()).
  Load collective_load(const PendingCommand& command, double slowest) const;
  // What all of it takes longer.
  double collective_times(const PendingCommand& command, double slowest) const { return noise(command) * slowest; }
  // Of this rank, how many times as long all that it does takes (Truth::stragglers).
  double slowness() const { return slowness_; }
  // Lanes that other lanes slow down keep a flow, whose speed can change.
  bool slowed_by_others(Engine engine) const { return slowed_[static_cast<std::size_t>(engine)]; }
  // Factors on the durations of flows under way, by kind of lane, while the lanes `busy` are; `loads`: of each lane.
  std::array<double, kEngineCount> slow_downs(const std::array<Load, kLaneCount>& loads, const BusyLanes& busy) const;

 private:
  Load run_load(const PendingCommand& command, double stretch) const;
  Load copy_load(const PendingCommand& command) const;
  Load flow(std::int64_t ns, double bytes, Route route, Engine engine) const;
  double factor(const PendingCommand& command) const;
  double noise(const PendingCommand& command) const;
  double share_of(const PendingCommand& command) const;
  double memory_bytes(WorkId work) const;
  double capacity(Engine engine) const;
  bool link_binds(Engine lane) const;
  bool weighs_memory() const { return fidelity_ == Fidelity::Shared && !profile_->memory_weights.empty(); }

  const Graph* graph_;
  const HardwareProfile* profile_;
  Truth factors_;
  TruthTimes times_;  // of the step that computes
  std::int32_t step_ = kNone;
  std::uint64_t seed_;
  Fidelity fidelity_;
  Rank rank_;
  double slowness_ = 1;
  CostModel cost_;
  mutable std::vector<double> memory_bytes_;  // by work; negative is "not yet"
  mutable std::vector<std::optional<OnDevice>> on_device_;
  std::array<bool, kEngineCount> slowed_{};
};

}  // namespace tandem
