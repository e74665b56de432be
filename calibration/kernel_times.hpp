// Times of single LibTorch kernels by size, in the caches as a body finds them: the shapes of the efficiency curves.
// Must not know ops or profiles.
#pragma once

#include <cstdint>
#include <vector>

#include "calibration/statistics.hpp"
#include "core/graph/graph.hpp"

namespace tandem {

struct KernelTime {
  Kernel kernel;  // as workloads describe it
  Summary ns;
};

// Each takes `repeats` samples of every size on a thread of its own with one intra-operator thread. In order of size.
std::vector<KernelTime> time_gemms(bool quick, int repeats);
std::vector<KernelTime> time_attentions(bool quick, int repeats);
std::vector<KernelTime> time_memory_kernels(bool quick, int repeats);

}  // namespace tandem
