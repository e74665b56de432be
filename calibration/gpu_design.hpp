// What calibration measures on a machine with a GPU: kernels of up to a TFLOP and a GB, copies of up to a GiB, networks
// whose blocks are as large as those that are worth offloading. Must not know times, nor which GPU it is.
#pragma once

#include <cstdint>
#include <vector>

#include "calibration/design.hpp"
#include "calibration/lane_times.hpp"
#include "calibration/power_times.hpp"

namespace tandem {

struct DeviceDesign {
  bool cuda = true;  // kernels' tensors are the GPU's; false: a stand-in's, in host memory
  BodyLibrary (*library)() = &torch_library;
  DType type = DType::BF16;        // of networks and kernels
  std::vector<DType> other_types;  // whose peaks are taken from `rate_products`
  std::vector<GemmSize> rate_products;
  std::vector<LinearSize> odd_layers;  // in all types: sizes that few elements divide, each after an aligned one
  GemmSize peak_product, cpu_product;  // the latter in fp32, on the CPU's cores
  KernelDesign kernels;
  int kernel_repeats = 0;
  PowerDesign power;
  CopyDesign copies;
  Trial contention;                  // of which lanes' slow-downs are measured
  Trial launches;                    // of which launches are, beside busy lanes (launch_times.hpp)
  Trial updates;                     // whose largest update is timed on the CPU (update_turns.hpp)
  std::vector<Trial> trials;         // whole ops, on the device
  int passes = 0;                    // of each trial, at least
  double op_budget_ns = 0;           // of each trial
  std::vector<Trial> update_trials;  // of updates that are not plain Adam
  CpuComputeDesign cpu_compute;      // of the CPU beside the device
  std::int64_t triad_bytes = 0;
  std::int64_t probe_copy_bytes = 0;  // probe.hpp, which also takes peak_product and contention
};

// `quick`: under a minute on an H200. `cores`: of the CPU, which sizes its threads. No step of a trial needs more than
// 8 GiB of pinned memory (which takes 0.2 s a GiB) or 60 GB of the device's.
DeviceDesign gpu_design(bool quick, std::int32_t cores);

}  // namespace tandem
