// A hardware profile: every cost that a run pays, each number with its unit and source, as the YAML file states it.
// Loaded by load_profile (scenario/load.hpp). Must not know workloads, policies or worlds.
#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/ids.hpp"
#include "core/graph/graph.hpp"
#include "core/machine/fingerprint.hpp"

namespace tandem {

struct MeasuredOps;  // measured_ops.hpp
struct Topology;     // topology.hpp

// A curve y(x) by linear interpolation in log x between points, constant beyond them. Empty: `y` is 1 everywhere.
struct Curve {
  std::vector<double> x, y;  // x increasing and positive
  double at(double x_value) const;
};

// One direction of copies: time = latency + bytes / (bandwidth * efficiency(bytes)).
struct CopyRate {
  double bytes_per_s = 0;
  std::int64_t latency_ns = 0;
  Curve efficiency;  // over bytes
};

struct TierInfo {
  std::int64_t capacity_bytes = 0;  // 0: the machine has no such tier
  double bytes_per_s = 0;           // what all users of the tier share: HBM, DRAM; a disk that
                                    // gives reads and writes more together than either alone; 0: they take turns
};

// What a body takes beyond the sum of its kernels: time = op + sum over kernels of (factor(kind) * kernel time + row *
// rows), but no less than `least_ns`: of the root of both squares, as some kernels of an op are at their least while
// others are not.
struct BodyCost {
  std::int64_t op_ns = 0;
  std::map<KernelKind, double> factor;  // 1 where a kind is not there
  double row_ns = 0;                    // and for each row of its kernels
  std::int64_t dispatch_ns = 0;         // of the submitting thread, to launch the kernels: the op takes no less
  // Where launches that come again are recorded (core/scheduler/repeated_runs.hpp): what the submitting thread takes to
  // start them again, or to record and start them; 0: they are not. `gaps_ns`: what kernels that are launched one by
  // one take longer.
  std::int64_t repeat_ns = 0, record_ns = 0, gaps_ns = 0;
  // What the op takes longer where its kernels are launched as it runs, all of them, not while the op before it runs.
  std::int64_t late_ns = 0;
  std::int64_t least_ns = 0;  // what the kernels take, however little there is to do
};

// Lanes of a kind. Of teams of CPU threads, the cores of each; 0: all that there are.
struct LaneRow {
  int count = 1;
  std::int32_t cores = 0;
  bool operator==(const LaneRow&) const = default;
};

// What the device draws while it runs kernels of a kind at its full clock, and while it waits, as a share of its power
// limit. Above the limit it lowers its clock, until the average of a `window` meets it. `window_ns` 0: never. What the
// device takes for its limit depends on the window: for half a second an H200 draws up to 8% more than it may for long.
struct PowerLimit {
  double gemm = 0, attention = 0, memory = 0, idle = 0;
  std::int64_t window_ns = 0;
};

// What a step spends its time on, as far as calibration tells how well it predicts it. Sharing: what busy lanes take
// from each other, beyond what each takes alone.
enum class TimeCause : std::uint8_t { Compute, Copies, CpuOptimizer, Disk, Dispatch, Sharing };
inline constexpr int kTimeCauseCount = 6;
constexpr std::string_view name_of(TimeCause cause) {
  constexpr std::string_view kNames[] = {"compute", "copies", "cpu_optimizer", "disk", "dispatch", "sharing"};
  static_assert(std::size(kNames) == kTimeCauseCount);
  return kNames[static_cast<int>(cause)];
}

// How far the true time of a cause may be from the predicted one, over a whole run of work that was not measured.
struct Uncertainty {
  double relative = 0;  // standard deviation over the predicted time
  std::string source;
};

// How much longer a product takes whose operands, or whose result, lie along sizes that no more than some elements
// divide (Kernel::operand_alignment): libraries then load and store fewer of them at once.
struct AlignmentCost {
  double operands = 1, result = 1;
  bool operator==(const AlignmentCost&) const = default;
};

// How a lane shares the host's memory (host_memory.hpp).
struct MemoryWeight {
  double weight = 1;
  double cost = 1;  // what a byte takes of the bandwidth
  bool operator==(const MemoryWeight&) const = default;
};

// What a busy lane does to ops on Compute by way of their launches. A GPU reads what it needs to start a kernel from
// the host's memory, behind what copies to the device read: each kernel starts later, the small ones' ops feel it most.
// Shares of BodyCost::dispatch_ns, which stands for how many kernels there are.
struct LaunchSlowDown {
  double starts = 0, repeated_starts = 0;  // what ops take longer: launched afresh, or again from a recording
  double launch = 1;                       // factor on what the submitting thread takes to launch them
  bool operator==(const LaunchSlowDown&) const = default;
};

// What one core takes for a stage of the input pipeline: time = item + unit * units, where the unit is the stage's
// (core/base/input_stages.hpp).
struct StageRate {
  double item_ns = 0, unit_ns = 0;
  bool operator==(const StageRate&) const = default;
};

struct HardwareProfile {
  std::string name;
  std::string path;
  std::string text;                        // the YAML, for log headers
  std::string source;                      // of the figures that name none themselves; "": each names its own
  std::optional<Fingerprint> fingerprint;  // of the machine that was measured
  double price_per_hour = 0;               // of a device with its part of the host, in whatever money; 0: not known
  std::array<TierInfo, kTierCount> tiers;

  // CPU and device have one memory, which is tiers[Device]: what is said to be on the host is there, too, and no copy
  // goes between the two (integrated GPUs; a GH200 used as one pool).
  bool one_pool = false;

  // Devices that share one host's DRAM and disk. 0: all of a run's.
  std::int32_t devices_per_host = 0;

  // Who runs the compute lane's bodies: a GPU, whose kernels need other temporaries, or a CPU that stands in for one.
  bool gpu = false;
  std::int32_t processors = 0;  // multiprocessors of a GPU; 0: not known
  PowerLimit power, sustained_power;
  std::map<DType, double> product_draw;  // of a precision's products, over PowerLimit::gemm; 1 where not given
  // Device compute. Time of a kernel = launch + max(flops / (peak * efficiency), bytes / (memory bandwidth *
  // efficiency)).
  std::map<DType, double> peak_flops;      // by precision
  std::map<KernelKind, Curve> efficiency;  // of Gemm and Attention over flops; of Memory and Optimizer over bytes
  // By precision and alignment, of less than kAligned; 1 where not given.
  std::map<std::pair<DType, std::int16_t>, AlignmentCost> alignment;
  // Of a product, the share of the shorter of its flops' and its bytes' time that the longer one hides: 1 on a GPU,
  // whose processors take turns; less on a CPU, whose threads wait for weights that are not in their caches.
  double overlap = 1;
  std::int64_t launch_ns = 0;              // per kernel
  std::int64_t op_ns = 0;                  // per op: dispatch of a body beyond its kernels
  std::map<std::string, BodyCost> bodies;  // bodies that were measured, instead of op_ns; on Compute

  // Copies by lane; both directions at once share `pcie_bytes_per_s` (0: no shared cap).
  CopyRate h2d, d2h, disk_read, disk_write, peer;
  CopyRate pageable_h2d, pageable_d2h;  // of host memory that is not pinned: tiers[HostPageable], where there is some
  double pcie_bytes_per_s = 0;
  double host_copy_bytes_per_s = 0;      // each direction of all devices of one host together; 0: no shared cap
  std::int64_t small_copy_bytes = 4096;  // up to this size a copy goes on the small-copy lanes

  // The CPU: cores, and the optimizer step, parameters/s with all cores and bytes of DRAM traffic a parameter.
  std::int32_t cores = 1;
  double cpu_flops = 0;
  // What a team of CPU threads (LaneRow) takes for bodies, as if it were a device: kernels' rates and bodies. Null: not
  // measured, or the CPU is the device.
  std::shared_ptr<const HardwareProfile> cpu_compute;
  double cpu_optimizer_parameters_per_s = 0;
  Curve cpu_optimizer_efficiency;  // over parameters
  double cpu_optimizer_bytes = 0;  // that the update so timed moves, a parameter; 0: not known
  Curve cpu_optimizer_threads;     // share of the rate by threads; empty: in proportion
  std::int64_t cpu_op_ns = 0;      // per command on a CPU lane
  // Host-side costs.
  std::int64_t dispatch_ns = 0;  // of the submitting thread, per command
  std::int64_t event_ns = 0;     // from a completion to the scheduler's seeing it
  std::int64_t wake_ns = 0;      // from when a lane that slept may begin a command to its beginning
  // CPU cores that a lane's worker keeps busy while it runs a command; 0 where not given. Where busy lanes want more
  // cores than there are, they share them equally.
  std::map<Engine, double> lane_cores;
  // Kinds of which there is another number than one, or whose teams have another number of cores than all.
  std::map<Engine, LaneRow> lanes;
  // Empty: equal bytes for all.
  std::map<Engine, MemoryWeight> memory_weights;
  // What a lane's commands take of late, times what all else here says: as learnt while training. 1 where not given.
  std::map<Engine, double> lane_times;
  double loader_bytes_per_s = 0;                  // batches and initial parameters
  std::map<std::string, StageRate> input_stages;  // of kInputStages; one that is not there was not measured
  // Of one thread's rate at input stages, what each of so many has; empty: all of it.
  Curve input_threads;
  // Threads of the loader's lane, and of another host's; what the link from there carries. A scenario says them.
  std::int64_t input_workers = 1, remote_workers = 0;
  double remote_bytes_per_s = 0;
  // Collectives: a ring on p ranks, reduce-scatter or all-gather of n bytes = latency + (p-1)/p n / bandwidth; an
  // all-reduce is both.
  double collective_bytes_per_s = 0;
  std::int64_t collective_latency_ns = 0;
  double network_bytes_per_s = 0;  // of one device, to other hosts, each way; 0: as within one
  std::int64_t network_latency_ns = 0;
  // The links that devices and hosts share, by which collectives go. Null: what stands above is all that is known.
  std::shared_ptr<const Topology> topology;
  // Slow-down of a lane while another is busy, measured in pairs: factor on the duration (1: none). CPU stand-ins share
  // cores' caches and DRAM in ways that a bandwidth share alone does not show.
  std::map<std::pair<Engine, Engine>, double> interference;
  std::map<Engine, LaunchSlowDown> launches_beside;
  // Ops that were measured one by one: their times, instead of what all else here says of them. Null: none was.
  std::shared_ptr<const MeasuredOps> ops;
  // Of what was not measured. Independent between causes. Empty: not known, so that a prediction has no interval.
  std::map<TimeCause, Uncertainty> uncertainty;
};

}  // namespace tandem
