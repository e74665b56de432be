// What series of kernels that are timed have in common: tensors where they run, and the thread that calls them.
// Must not know how times are taken.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "calibration/kernel_times.hpp"

namespace tandem {

// On the GPU or the CPU, in the site's precision.
at::TensorOptions tensor_options(const KernelSite& site);
at::Tensor random_tensor(const KernelSite& site, at::IntArrayRef sizes);

// Fused, causal attention; its result is dropped. [1, heads, sequence, head size] each.
void call_attention(const KernelSite& site, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value);

// Runs `work` on a thread of its own, as kernels run on an executor's worker: LibTorch's number of threads is a
// thread's. Throws what `work` does.
void on_own_thread(const std::function<void()>& work);

}  // namespace tandem
