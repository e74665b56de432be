#include "calibration/kernel_times.hpp"

#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/add.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

#include "core/workloads/common/kernels.hpp"
#include "runtime/torch_setup.hpp"

namespace tandem {
namespace {

using Clock = std::chrono::steady_clock;

// A sample covers so many calls that it takes at least this long: timers and wake-ups then do not count.
constexpr double kLeastSampleNs = 20e3;
// No sample is worth more time than this.
constexpr double kLongNs = 50e6;

double time_once_ns(const std::function<void()>& call, int calls) {
  const auto start = Clock::now();
  for (int i = 0; i < calls; ++i) call();
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count() / calls;
}

Summary time_call(const std::function<void()>& call, int repeats) {
  call();
  const double first_ns = time_once_ns(call, 1);
  const int calls = std::max(1, static_cast<int>(kLeastSampleNs / std::max(1.0, first_ns)));
  const int samples = first_ns > kLongNs ? 2 : repeats;
  std::vector<double> ns;
  for (int i = 0; i < samples; ++i) ns.push_back(time_once_ns(call, calls));
  return summarize(ns);
}

// Kernels run as on the executor's compute worker: on another thread, with one intra-operator thread.
std::vector<KernelTime> on_worker(const std::function<std::vector<KernelTime>()>& work) {
  std::vector<KernelTime> times;
  std::thread worker([&] {
    set_thread_count(1);
    times = work();
  });
  worker.join();
  return times;
}

KernelTime time_gemm(std::int64_t m, std::int64_t n, std::int64_t k, int repeats) {
  const at::Tensor bias = at::randn({n}), input = at::randn({m, k}), weight = at::randn({n, k});
  at::Tensor out = at::empty({m, n});
  return {gemm(m, n, k, DType::F32), time_call([&] { at::addmm_out(out, bias, input, weight.t()); }, repeats)};
}

// Causal, as decoders run it.
KernelTime time_attention(std::int64_t heads, std::int64_t sequence, std::int64_t head_size, int repeats) {
  const at::Tensor query = at::randn({1, heads, sequence, head_size}), key = at::randn({1, heads, sequence, head_size}),
                   value = at::randn({1, heads, sequence, head_size});
  const auto call = [&] {
    at::_scaled_dot_product_flash_attention_for_cpu(query, key, value, /*dropout_p=*/0.0, /*is_causal=*/true);
  };
  return {attention_forward(heads, sequence, sequence, head_size, DType::F32), time_call(call, repeats)};
}

KernelTime time_addition(std::int64_t elements, int repeats) {
  const at::Tensor a = at::randn({elements}), b = at::randn({elements});
  at::Tensor out = at::empty({elements});
  return {memory_kernel(3 * elements * size_of(DType::F32)), time_call([&] { at::add_out(out, a, b); }, repeats)};
}

}  // namespace

std::vector<KernelTime> time_gemms(bool quick, int repeats) {
  // Rows are tokens, columns and inner sizes multiples of a hidden size: 4 to 1 as in a block.
  constexpr std::int64_t kHidden[] = {32, 64, 96, 160, 256, 448, 704};
  return on_worker([&] {
    std::vector<KernelTime> times;
    for (const std::int64_t hidden : kHidden) {
      if (quick && hidden > 256) break;
      times.push_back(time_gemm(hidden, hidden, hidden, repeats));
      times.push_back(time_gemm(hidden, 4 * hidden, hidden, repeats));
    }
    return times;
  });
}

std::vector<KernelTime> time_attentions(bool quick, int repeats) {
  struct Shape {
    std::int64_t heads, sequence, head_size;
  };
  constexpr Shape kShapes[] = {{2, 16, 16}, {4, 32, 24}, {8, 64, 32}, {8, 128, 32}, {8, 224, 48}, {12, 448, 64}};
  return on_worker([&] {
    std::vector<KernelTime> times;
    for (const Shape& s : kShapes)
      if (!quick || s.sequence <= 224) times.push_back(time_attention(s.heads, s.sequence, s.head_size, repeats));
    return times;
  });
}

std::vector<KernelTime> time_memory_kernels(bool quick, int repeats) {
  constexpr std::int64_t kLeastElements = 256, kMostElements = std::int64_t{16} << 20, kQuickElements = 4 << 20;
  return on_worker([&] {
    std::vector<KernelTime> times;
    for (std::int64_t n = kLeastElements; n <= (quick ? kQuickElements : kMostElements); n *= 4)
      times.push_back(time_addition(n, repeats));
    return times;
  });
}

}  // namespace tandem
