// Durations of ops and copies on a machine that runs nothing else, from its profile.
// The scheduler's estimates and the simulator's truth are separate objects of this class.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/graph/graph.hpp"
#include "core/machine/measured_ops.hpp"
#include "core/machine/profile.hpp"

namespace tandem {

class CostModel {
 public:
  explicit CostModel(const HardwareProfile& profile);

  // Duration of a whole op of this work on an engine, in ns. Cached by work: O(1) after the first call.
  std::int64_t run_ns(const Graph& graph, WorkId work, Engine engine) const;
  // Duration of `part_bytes` out of `whole_bytes` of a divisible op: the cost of a command is paid by every part, the
  // rest is shared in proportion.
  std::int64_t run_part_ns(const Graph& graph, WorkId work, Engine engine, std::int64_t part_bytes,
                           std::int64_t whole_bytes) const;
  // Duration of a copy alone on its lane, in ns. On Compute, a copy within the device's memory. `pageable`: of host
  // memory that is not pinned.
  std::int64_t copy_ns(Engine lane, std::int64_t bytes, bool pageable = false) const;
  // `bytes` once around a ring of `ranks` ranks: a reduce-scatter or an all-gather of so many; an all-reduce of half.
  // `on_host`: of the ranks, where they are of several hosts, those on one; 0: all.
  std::int64_t collective_ns(std::int64_t bytes, std::int64_t ranks, std::int64_t on_host = 0) const;
  // DRAM (CPU lanes) or HBM (Compute) traffic of one op of this work, in bytes.
  static std::int64_t memory_bytes(const Work& work);

  // What the submitting thread needs to launch the kernels of an op on Compute; 0 where it was not measured. run_ns is
  // no less.
  std::int64_t dispatch_ns(const Work& work, Engine engine) const;
  // Duration of an op on Compute whose launches were recorded, in ns; where they never are, run_ns.
  std::int64_t repeated_run_ns(const Graph& graph, WorkId work) const;
  // An optimizer step, whatever else its kernels do.
  static bool is_update(const Work& work);
  // What was measured of the work's body; null: nothing. Of an update, how much longer than plain Adam of as many
  // parameters it takes on the CPU; of all others, what they take on Compute.
  const BodyCost* body_cost(const Work& work, Engine engine) const;
  // What was measured of the op itself, which comes before all that is known of its body and kernels; null: nothing.
  // Cached by work.
  const MeasuredOp* measured(const Graph& graph, WorkId work, Engine engine) const;
  // What launching an op's kernels on Compute takes the submitting thread, as of BodyCost; 0 where it was not measured.
  // `late_ns` is 0 of an op that was measured in a step, which had it.
  struct Launching {
    std::int64_t dispatch_ns = 0, repeat_ns = 0, record_ns = 0, late_ns = 0;
  };
  Launching launching(const Graph& graph, WorkId work) const;
  // How an op on Compute spends its time at the full clock, for what the device draws (PowerLimit): `clocked`, the
  // share that a lower clock makes longer; `attention`, the part of it in fused attention; `products`, its flops in
  // matrix products over what the peak does in that time.
  struct Activity {
    double clocked = 0, products = 0, attention = 0;
  };
  Activity activity(const Work& work) const;

  // The rate that a copy lane follows. CHECKs that `lane` copies.
  const CopyRate& copy_rate(Engine lane, bool pageable = false) const;
  const HardwareProfile& profile() const { return *profile_; }
  // The one kernel's time, without op_ns; for calibration's residuals.
  std::int64_t kernel_ns(const Kernel& kernel, DType type, Engine engine) const;

 private:
  double device_kernel_ns(const Kernel& kernel, DType type) const;
  double host_kernel_ns(const Kernel& kernel) const;
  double input_ns(const Kernel& kernel, Engine engine) const;
  double device_input_ns(const Kernel& kernel, DType type) const;
  double kernel_time_ns(const Kernel& kernel, DType type, Engine engine) const;
  double kernel_in_body_ns(const Kernel& kernel, DType type, Engine engine, const BodyCost* body) const;
  double kernels_ns(const Work& work, Engine engine) const;
  double compute_run_ns(const Work& work, Engine engine) const;
  std::int64_t command_ns(const Work& work, Engine engine) const;
  double lane_time(Engine engine) const;
  double alone_ns(const Graph& graph, WorkId work, Engine engine) const;
  std::int64_t find_repeated_ns(const Graph& graph, WorkId work) const;
  std::int64_t modelled_repeated_ns(const Work& work) const;
  double repeated_share(const Work& work) const;
  const HardwareProfile* profile_;
  std::shared_ptr<const CostModel> cpu_compute_;  // of HardwareProfile::cpu_compute
  mutable std::vector<std::int64_t> cache_;       // by work * kEngineCount + engine; 0 is "not yet"
  mutable std::vector<std::int64_t> repeated_;    // by work, likewise
  struct Found {
    bool looked = false;
    const MeasuredOp* op = nullptr;
  };
  mutable std::vector<Found> measured_;  // by work * kEngineCount + engine
};

}  // namespace tandem
