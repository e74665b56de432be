#include "calibration/kernel_times.hpp"

#include <ATen/ops/add.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "calibration/kernel_calls.hpp"
#include "calibration/kernel_clock.hpp"
#include "core/graph/kernels.hpp"

namespace tandem {
namespace {

// A sample covers so many calls that it takes at least this long: timers and wake-ups then do not count. A device's
// marks lie further apart than a thread's readings of a clock.
constexpr double kLeastSampleNs = 20e3, kLeastDeviceSampleNs = 200e3;
// No sample is worth more time than this.
constexpr double kLongNs = 50e6;
constexpr int kMostCalls = 200;

// What a device does while the host hands calls over to it: some milliseconds of additions to 256 MiB, where it is a
// GPU.
constexpr std::int64_t kAheadElements = std::int64_t{1} << 26;
constexpr int kAheadCalls = 24;

class Bench {
 public:
  Bench(const KernelSite& site, int repeats) : site_(site), clock_(open_clock(site)), repeats_(repeats) {
    if (site.cuda)
      clock_->prepare([&] { ahead_ = at::zeros({kAheadElements}, at::device(at::kCUDA).dtype(at::kFloat)); });
  }

  KernelTime gemm(const GemmSize& s) {
    at::Tensor bias, input, weight, out;
    clock_->prepare([&] {
      bias = random({s.n}), input = random({s.m, s.k}), weight = random({s.n, s.k});
      out = at::empty({s.m, s.n}, options());
    });
    return {tandem::gemm(s.m, s.n, s.k, site_.type), time([&] { at::addmm_out(out, bias, input, weight.t()); })};
  }

  // With so many weights in turn.
  std::vector<KernelTime> linear(const LinearSize& s, std::int64_t count = 1) {
    at::Tensor x, y, x_gradient;
    std::vector<at::Tensor> weights;
    clock_->prepare([&] {
      x = random({s.rows, s.inputs}), y = random({s.rows, s.outputs}), x_gradient = at::empty_like(x);
      for (std::int64_t i = 0; i < count; ++i) weights.push_back(random({s.outputs, s.inputs}));
    });
    std::size_t turn = 0;
    const auto weight = [&]() -> at::Tensor& { return weights[turn++ % weights.size()]; };
    std::vector<KernelTime> times;
    const auto add = [&](const Kernel& kernel, auto call) { times.push_back({kernel, time(call)}); };
    add(linear_input_gradient(s.rows, s.outputs, s.inputs, site_.type), [&] { at::mm_out(x_gradient, y, weight()); });
    add(linear_product(s.rows, s.outputs, s.inputs, site_.type), [&] { at::mm_out(y, x, weight().t()); });
    add(linear_weight_gradient(s.rows, s.outputs, s.inputs, site_.type), [&] { at::mm_out(weight(), y.t(), x); });
    return times;
  }

  KernelTime attention(const AttentionSize& s) {
    at::Tensor query, key, value;
    clock_->prepare([&] {
      for (at::Tensor* operand : {&query, &key, &value}) *operand = random({1, s.heads, s.sequence, s.head_size});
    });
    const auto call = [&] { call_attention(site_, query, key, value); };
    return {attention_forward(s.heads, s.sequence, s.sequence, s.head_size, site_.type, /*causal=*/true), time(call)};
  }

  KernelTime addition(std::int64_t elements) {
    at::Tensor a, b, out;
    clock_->prepare([&] { a = random({elements}), b = random({elements}), out = at::empty({elements}, options()); });
    return {memory_kernel(3 * elements * size_of(site_.type)), time([&] { at::add_out(out, a, b); })};
  }

 private:
  at::TensorOptions options() const { return tensor_options(site_); }
  at::Tensor random(at::IntArrayRef sizes) const { return random_tensor(site_, sizes); }

  Summary time(const std::function<void()>& call) {
    const auto ahead = [this] {
      for (int i = 0; ahead_.defined() && i < kAheadCalls; ++i) at::add_out(ahead_, ahead_, ahead_);
    };
    clock_->time_ns(call, 1, ahead);
    const double first_ns = clock_->time_ns(call, 1, ahead);
    const double least_ns = site_.device ? kLeastDeviceSampleNs : kLeastSampleNs;
    const int calls = std::clamp(static_cast<int>(least_ns / std::max(1.0, first_ns)), 1, kMostCalls);
    const int samples = first_ns > kLongNs ? 2 : repeats_;
    std::vector<double> ns;
    for (int i = 0; i < samples; ++i) ns.push_back(clock_->time_ns(call, calls, ahead));
    return summarize(ns);
  }

  KernelSite site_;
  std::unique_ptr<KernelClock> clock_;
  int repeats_;
  at::Tensor ahead_;
};

// Without a device, kernels run as on the executor's compute worker: on another thread.
template <typename Size, typename Time>
std::vector<KernelTime> time_all(const KernelSite& site, const std::vector<Size>& sizes, int repeats, Time time) {
  std::vector<KernelTime> times;
  on_own_thread([&] {
    Bench bench(site, repeats);
    for (const Size& size : sizes) times.push_back(time(bench, size));
  });
  return times;
}

}  // namespace

std::vector<KernelTime> time_gemms(const KernelSite& site, const std::vector<GemmSize>& sizes, int repeats) {
  return time_all(site, sizes, repeats, [](Bench& bench, const GemmSize& size) { return bench.gemm(size); });
}

std::vector<KernelTime> time_linears(const KernelSite& site, const std::vector<LinearSize>& sizes, int repeats) {
  return time_cold_linears(site, sizes, 0, repeats);
}

std::vector<KernelTime> time_cold_linears(const KernelSite& site, const std::vector<LinearSize>& sizes,
                                          std::int64_t weight_bytes, int repeats) {
  std::vector<KernelTime> times;
  on_own_thread([&] {
    Bench bench(site, repeats);
    for (const LinearSize& size : sizes)
      for (KernelTime& time : bench.linear(size, 1 + weight_bytes / (size.outputs * size.inputs * size_of(site.type))))
        times.push_back(std::move(time));
  });
  return times;
}

std::vector<KernelTime> time_attentions(const KernelSite& site, const std::vector<AttentionSize>& sizes, int repeats) {
  return time_all(site, sizes, repeats, [](Bench& bench, const AttentionSize& size) { return bench.attention(size); });
}

std::vector<KernelTime> time_memory_kernels(const KernelSite& site, const std::vector<std::int64_t>& elements,
                                            int repeats) {
  return time_all(site, elements, repeats, [](Bench& bench, std::int64_t count) { return bench.addition(count); });
}

}  // namespace tandem
