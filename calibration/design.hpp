// What calibration measures on a machine without a GPU: networks that it trains to time their ops, and kernels, of
// sizes that a CPU can do with. Held-out networks are measured alike but not fitted, so that the fit's error on new
// sizes is known. Must not know times.
#pragma once

#include <vector>

#include "calibration/kernel_times.hpp"
#include "core/scenario/scenario.hpp"
#include "core/workloads/workload.hpp"

namespace tandem {

// Sizes of kernels to be timed alone, each list in growing order.
struct KernelDesign {
  std::vector<GemmSize> gemms;
  std::vector<AttentionSize> attentions;
  std::vector<std::int64_t> additions;  // elements
  // Few rows by weights that no cache holds, of which there are so many bytes; empty: flops hide all traffic.
  std::vector<LinearSize> cold_linears;
  std::int64_t cold_bytes = 0;
};
KernelDesign designed_kernels(bool quick);

struct Trial {
  Scenario scenario;
  bool held_out = false;
  Rewrites rewrites = {};
  // On the CPU. Caches may hold states of small networks, as they do not in runs.
  bool times_update = true;
};

// The network as trained by updates of each kind that is not plain Adam, of whose steps only what plain training lacks
// is timed: gradients in a subspace of `rank`, in a step that fits the projectors, momentum by signs, quantised states.
std::vector<Trial> update_trials(const Trial& network, std::int64_t rank, bool quick = false);

// `cores` sizes the workspaces of bodies, as it does in runs.
std::vector<Trial> designed_trials(bool quick, std::int32_t cores);
std::vector<Trial> designed_update_trials(bool quick, std::int32_t cores);
// The network of which lanes' slow-downs are measured: its ops take milliseconds, its states do not fit in caches.
Trial contention_trial(std::int32_t cores);

// What the CPU beside a device is measured with (cpu_compute.hpp).
struct CpuComputeDesign {
  DType type = DType::F32;         // of networks and kernels
  std::vector<DType> other_types;  // whose peaks are taken from the largest products
  KernelDesign kernels;
  int kernel_repeats = 0;
  std::vector<Trial> trials;  // networks all of whose modules the CPU computes
  int passes = 0;
  double op_budget_ns = 0;
};

// The trials that a CPU calibration trains, in another precision.
CpuComputeDesign cpu_compute_design(bool quick, std::int32_t cores, DType type);

}  // namespace tandem
