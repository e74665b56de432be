// Where a workload's kernels lie under the roofline of the device: flops a byte of its memory, against what the device
// does of both in a second. Must not know formats or worlds.
#pragma once

#include "analysis/steps.hpp"
#include "analysis/timeline.hpp"
#include "core/scenario/scenario.hpp"

namespace tandem {

struct Roofline {
  double flops = 0, bytes = 0;             // of what ran on the device, a step: recompute and updates count
  double peak_flops = 0, bytes_per_s = 0;  // of the device, in the workload's precision
  // Seconds a step, as the profile has them, of kernels whose flops take longer than their bytes, and of the others.
  double arithmetic_s = 0, memory_s = 0;
  double intensity() const { return bytes > 0 ? flops / bytes : 0; }                 // flops a byte
  double balance() const { return bytes_per_s > 0 ? peak_flops / bytes_per_s : 0; }  // the same of the device
};

// Means over the steps that count and over ranks.
Roofline roofline(const Timeline& timeline, const Steps& steps, const Scenario& scenario);

}  // namespace tandem
