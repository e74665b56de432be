#include "calibration/power_times.hpp"

#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "calibration/kernel_calls.hpp"
#include "calibration/kernel_clock.hpp"

namespace tandem {
namespace {

using Clock = std::chrono::steady_clock;

// So long are rounds; the clock is still the full one in the first few, and what it settles at in the last third.
constexpr double kRoundNs = 10e6, kRestedNs = 1.5e7;
constexpr double kNothing = 1.01;  // a device that takes no longer than this has no limit that could be told from noise
// Of the limit, while a device waits: 120 to 150 W of an H200's 700.
constexpr double kIdle = 0.2;
// In an endless series of products an H200's clock falls after 40 ms, and for about 100.
constexpr std::int64_t kWindowNs = 40'000'000;
constexpr double kMostDraw = 5;

class Series {
 public:
  Series(const KernelSite& site, const PowerDesign& design) : site_(site), clock_(open_clock(site)), design_(design) {
    clock_->prepare([&] {
      const GemmSize& g = design.gemm;
      left_ = random({g.m, g.k}), right_ = random({g.k, g.n}), product_ = at::empty({g.m, g.n}, options());
      const AttentionSize& a = design.attention;
      query_ = random({1, a.heads, a.sequence, a.head_size});
      sum_ = at::empty({design.additions}, options()), addend_ = random({design.additions});
    });
  }

  void gemm() { at::mm_out(product_, left_, right_); }
  void attention() { call_attention(site_, query_, query_, query_); }
  void addition() { at::add_out(sum_, addend_, addend_); }

  double alone_ns(const std::function<void()>& call) {
    clock_->time_ns(call, 1, [] {});
    return clock_->time_ns(call, 1, [] {});
  }

  // Of a round of `call`: at first, and in the end.
  std::pair<double, double> times(const std::function<void()>& call) {
    std::this_thread::sleep_for(std::chrono::duration<double>(design_.seconds));
    std::vector<double> rounds;
    double spent = 0, first = 0;
    const auto start = Clock::now();
    while (std::chrono::duration<double>(Clock::now() - start).count() < design_.seconds) {
      rounds.push_back(clock_->time_ns(call, 1, [] {}));
      spent += rounds.back();
      if (first == 0 || spent < kRestedNs) first = rounds.back();
    }
    return {first, quantile({rounds.end() - static_cast<std::ptrdiff_t>((rounds.size() + 2) / 3), rounds.end()}, 0.5)};
  }

 private:
  at::TensorOptions options() const { return tensor_options(site_); }
  at::Tensor random(at::IntArrayRef sizes) const { return random_tensor(site_, sizes); }

  KernelSite site_;
  std::unique_ptr<KernelClock> clock_;
  PowerDesign design_;
  at::Tensor left_, right_, product_, query_, sum_, addend_;
};

int calls_in(double ns, double one_ns) { return std::max(1, static_cast<int>(ns / std::max(1.0, one_ns))); }

PowerTimes time_series(const KernelSite& site, const PowerDesign& design) {
  Series series(site, design);
  const auto repeated = [](int calls, auto call) {
    return [calls, call] {
      for (int i = 0; i < calls; ++i) call();
    };
  };
  const auto gemm = [&] { series.gemm(); };
  const auto attention = [&] { series.attention(); };
  const auto addition = [&] { series.addition(); };
  const double gemm_ns = series.alone_ns(gemm), attention_ns = series.alone_ns(attention),
               addition_ns = series.alone_ns(addition);
  // No clock rises above the full one: what took less time in the end was disturbed at first.
  const auto longer = [&](const std::function<void()>& round) {
    const auto [first, last] = series.times(round);
    return std::max(1.0, last / first);
  };
  PowerTimes times;
  times.gemm = longer(repeated(calls_in(kRoundNs, gemm_ns), gemm));
  times.attention = longer(repeated(calls_in(kRoundNs, attention_ns), attention));
  const int additions = calls_in(kRoundNs / 2, addition_ns);
  const double memory_ns = addition_ns * additions;
  const auto products = repeated(calls_in(kRoundNs / 2, gemm_ns), gemm);
  const auto sums = repeated(additions, addition);
  const auto [first, last] = series.times([&] { products(), sums(); });
  times.product_share = std::clamp(1 - memory_ns / first, 0.1, 0.9);
  times.mixed_gemm = std::max(1.0, (last - (1 - times.product_share) * first) / (times.product_share * first));
  return times;
}

}  // namespace

PowerTimes time_power(const KernelSite& site, const PowerDesign& design) {
  PowerTimes times;
  if (design.seconds <= 0) return times;
  on_own_thread([&] { times = time_series(site, design); });
  return times;
}

// The inverse of the simulator's DeviceClock: (stretch)^2 = what needs the clock would draw at the full one over what
// the rest leaves it, both averages over time.
PowerLimit power_limit(const PowerTimes& times) {
  if (std::max(times.gemm, times.attention) < kNothing) return {};
  const auto drawn = [](double stretch) { return std::clamp(stretch * stretch, kIdle, kMostDraw); };
  PowerLimit limit{drawn(times.gemm), drawn(times.attention), 0, kIdle, kWindowNs};
  const double products = times.product_share * times.mixed_gemm, memory = 1 - times.product_share;
  const double left = products * limit.gemm / drawn(times.mixed_gemm);
  limit.memory = memory <= 0 ? kIdle : std::clamp((products + memory - left) / memory, kIdle, 1.0);
  return limit;
}

}  // namespace tandem
