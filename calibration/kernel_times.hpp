// Times of single LibTorch kernels by size, in the caches as a body finds them: the shapes of the efficiency curves.
// And of products whose weights no cache holds. Must not know ops or profiles.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "calibration/statistics.hpp"
#include "core/graph/graph.hpp"
#include "runtime/executors/device.hpp"

namespace tandem {

struct KernelTime {
  Kernel kernel;  // as workloads describe it
  Summary ns;
};

struct GemmSize {
  std::int64_t m, n, k;  // rows, columns, inner
};
// A linear layer's, whose three products lie in memory as in a body.
struct LinearSize {
  std::int64_t rows, outputs, inputs;
};
struct AttentionSize {
  std::int64_t heads, sequence, head_size;  // heads of all sequences of a batch
};

// Where kernels run, and on which numbers.
struct KernelSite {
  std::shared_ptr<Device> device;  // null: a thread of its own, timed by the host's clock
  bool cuda = false;               // tensors are the GPU's
  DType type = DType::F32;
  int threads = 1;  // intra-operator, without a device
};

// Each takes `repeats` samples of every size, in the order given. Attention is causal. Memory kernels add two vectors
// of so many elements. With a device, times are between its own marks, of calls that are handed over ahead of it.
std::vector<KernelTime> time_gemms(const KernelSite& site, const std::vector<GemmSize>& sizes, int repeats);
// Of each layer its product, and the gradients of its input and of its weight.
std::vector<KernelTime> time_linears(const KernelSite& site, const std::vector<LinearSize>& sizes, int repeats);
// The same products, each of them on another weight, or into another gradient of one, than those before: so many bytes
// of weights in turn.
std::vector<KernelTime> time_cold_linears(const KernelSite& site, const std::vector<LinearSize>& sizes,
                                          std::int64_t weight_bytes, int repeats);
std::vector<KernelTime> time_attentions(const KernelSite& site, const std::vector<AttentionSize>& sizes, int repeats);
std::vector<KernelTime> time_memory_kernels(const KernelSite& site, const std::vector<std::int64_t>& elements,
                                            int repeats);

}  // namespace tandem
