#include "calibration/kernel_calls.hpp"

#include <ATen/ops/_scaled_dot_product_flash_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/randn.h>

#include <exception>
#include <thread>

#include "runtime/torch_types.hpp"

namespace tandem {

at::TensorOptions tensor_options(const KernelSite& site) {
  return at::TensorOptions().device(site.cuda ? at::kCUDA : at::kCPU).dtype(torch_type(site.type));
}

at::Tensor random_tensor(const KernelSite& site, at::IntArrayRef sizes) {
  return at::randn(sizes, tensor_options(site));
}

void call_attention(const KernelSite& site, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  if (site.cuda)
    at::_scaled_dot_product_flash_attention(query, key, value, /*dropout_p=*/0.0, /*is_causal=*/true);
  else
    at::_scaled_dot_product_flash_attention_for_cpu(query, key, value, /*dropout_p=*/0.0, /*is_causal=*/true);
}

void on_own_thread(const std::function<void()>& work) {
  std::exception_ptr failure;
  std::thread([&] {
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
  }).join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace tandem
