// What tells one machine from another of its model: what it says that it is and has, and a few figures of how fast it
// is. Must not know how either is found out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tandem {

struct ProbeFigure {
  double per_s = 0;   // flops, bytes or parameters; 0: not measured
  double spread = 0;  // of repeats: from the 10th to the 90th percentile, over the median
};

// Measured in seconds, so that a machine can be asked for them again (calibration/probe.hpp).
struct Probe {
  ProbeFigure gemm, h2d, d2h, cpu_optimizer;
};

struct Fingerprint {
  std::string processor;          // "": not known, as all that is empty or 0
  std::int32_t cores = 0;         // that the process may use
  std::int64_t memory_bytes = 0;  // that the process may use, of the host
  std::string device, driver;     // "" where the CPU stands in for a device
  Probe probe;
  std::string busy;  // why the machine was not in a state to be measured, where it was all the same
};

// What is known of both and differs, each as "cores: 2 in the profile, 4 here". Figures of the probe are left out.
std::vector<std::string> differences(const Fingerprint& profile, const Fingerprint& here);

// Figures that both have and that differ by more than repeats of either do, and by more than 5%, each as "gemm: 100
// GFLOPS in the profile, 80 GFLOPS here: 0.80 of it".
std::vector<std::string> drifts(const Probe& profile, const Probe& here);

// The figures that were measured, each as "gemm 100 GFLOPS, spread 2%".
std::vector<std::string> figures(const Probe& probe);

}  // namespace tandem
