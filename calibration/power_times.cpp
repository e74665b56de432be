#include "calibration/power_times.hpp"

#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

#include "calibration/kernel_calls.hpp"
#include "calibration/kernel_clock.hpp"

namespace tandem {
namespace {

using Clock = std::chrono::steady_clock;

// So long are rounds; the clock is still the full one in the first few.
constexpr double kRoundNs = 10e6, kRestedNs = 1.5e7;
constexpr double kSettled = 2.0 / 3;    // of `seconds`, after which the clock is the one that holds at first
constexpr double kSustained = 1.0 / 3;  // of `sustained_seconds`, after which the mean is taken
constexpr double kNothing = 1.01;  // a device that takes no longer than this has no limit that could be told from noise
// Of the limit, while a device waits between kernels: 105 to 130 W of an H200's 700.
constexpr double kIdle = 0.15;
constexpr double kMostDraw = 5;

// Of a round, in ns: at the full clock, once it has settled, and in the mean of a long time.
struct Rounds {
  double first = 0, brief = 0, sustained = 0;
};

class Series {
 public:
  Series(const KernelSite& site, const PowerDesign& design) : site_(site), clock_(open_clock(site)), design_(design) {
    clock_->prepare([&] {
      for (const GemmSize& g : design.gemms)
        products_.push_back({random({g.m, g.k}), random({g.k, g.n}), at::empty({g.m, g.n}, options())});
      const AttentionSize& a = design.attention;
      query_ = random({1, a.heads, a.sequence, a.head_size});
      sum_ = at::empty({design.additions}, options()), addend_ = random({design.additions});
    });
  }

  // Each product once, and `then` after it.
  void gemms(const std::function<void()>& then) {
    for (Product& p : products_) {
      at::mm_out(p.result, p.left, p.right);
      then();
    }
  }
  void attention() { call_attention(site_, query_, query_, query_); }
  void addition() { at::add_out(sum_, addend_, addend_); }

  double alone_ns(const std::function<void()>& call) {
    clock_->time_ns(call, 1, [] {});
    return clock_->time_ns(call, 1, [] {});
  }

  Rounds times(const std::function<void()>& call) {
    std::this_thread::sleep_for(std::chrono::duration<double>(design_.seconds));
    std::vector<double> settled, late;
    double spent = 0, first = 0, passed = 0;
    const auto start = Clock::now();
    while (passed < design_.sustained_seconds) {
      const double ns = clock_->time_ns(call, 1, [] {});
      spent += ns;
      if (first == 0 || spent < kRestedNs) first = ns;
      passed = std::chrono::duration<double>(Clock::now() - start).count();
      if (settled.empty() || (passed > kSettled * design_.seconds && passed < design_.seconds)) settled.push_back(ns);
      if (late.empty() || passed > kSustained * design_.sustained_seconds) late.push_back(ns);
    }
    return {first, quantile(settled, 0.5),
            std::accumulate(late.begin(), late.end(), 0.0) / static_cast<double>(late.size())};
  }

 private:
  at::TensorOptions options() const { return tensor_options(site_); }
  at::Tensor random(at::IntArrayRef sizes) const { return random_tensor(site_, sizes); }

  KernelSite site_;
  std::unique_ptr<KernelClock> clock_;
  PowerDesign design_;
  struct Product {
    at::Tensor left, right, result;
  };
  std::vector<Product> products_;
  at::Tensor query_, sum_, addend_;
};

int calls_in(double ns, double one_ns) { return std::max(1, static_cast<int>(ns / std::max(1.0, one_ns))); }

// No clock rises above the full one: what took less time later was disturbed at first.
double times_as_long(double later, double first) { return std::max(1.0, later / first); }

PowerSeries time_series(const KernelSite& site, const PowerDesign& design) {
  Series series(site, design);
  const auto repeated = [](int calls, auto call) {
    return [calls, call] {
      for (int i = 0; i < calls; ++i) call();
    };
  };
  const auto gemms = [&] { series.gemms([] {}); };
  const auto attention = [&] { series.attention(); };
  const auto addition = [&] { series.addition(); };
  const double gemms_ns = series.alone_ns(gemms), attention_ns = series.alone_ns(attention),
               addition_ns = series.alone_ns(addition);
  const Rounds products = series.times(repeated(calls_in(kRoundNs, gemms_ns), gemms));
  const Rounds attentions = series.times(repeated(calls_in(kRoundNs, attention_ns), attention));
  const auto products_a_turn = static_cast<double>(design.gemms.size());
  const int additions = calls_in(gemms_ns / products_a_turn, addition_ns), turns = calls_in(kRoundNs / 2, gemms_ns);
  const auto sums = repeated(additions, addition);
  const Rounds mixed = series.times(repeated(turns, [&] { series.gemms(sums); }));
  const double share = std::clamp(1 - addition_ns * additions * products_a_turn * turns / mixed.first, 0.1, 0.9);
  const auto at = [&](double Rounds::*when) {
    const double left = mixed.*when - (1 - share) * mixed.first;
    return PowerTimes{times_as_long(products.*when, products.first), times_as_long(attentions.*when, attentions.first),
                      share, times_as_long(left, share * mixed.first)};
  };
  return {at(&Rounds::brief), at(&Rounds::sustained), products.first / calls_in(kRoundNs, gemms_ns)};
}

}  // namespace

PowerSeries time_power(const KernelSite& site, const PowerDesign& design) {
  PowerSeries times;
  if (design.seconds <= 0) return times;
  on_own_thread([&] { times = time_series(site, design); });
  return times;
}

std::pair<double, double> time_product_power(const KernelSite& site, const PowerDesign& design) {
  std::pair<double, double> found;
  on_own_thread([&] {
    Series series(site, design);
    const auto gemms = [&] { series.gemms([] {}); };
    const int calls = calls_in(kRoundNs, series.alone_ns(gemms));
    const Rounds products = series.times([&] {
      for (int i = 0; i < calls; ++i) gemms();
    });
    found = {times_as_long(products.sustained, products.first), products.first / calls};
  });
  return found;
}

double product_draw(double times_as_long, double of_peak) {
  return std::min(kMostDraw, times_as_long < kNothing ? 1.0 : times_as_long * times_as_long / of_peak);
}

// The inverse of the simulator's DeviceClock: (stretch)^2 = what needs the clock would draw at the full one over what
// the rest leaves it, both averages over time.
PowerLimit power_limit(const PowerTimes& times, double of_peak, std::int64_t window_ns) {
  if (std::max(times.gemm, times.attention) < kNothing) return {};
  const auto drawn = [](double stretch) { return std::clamp(stretch * stretch, kIdle, kMostDraw); };
  const double gemm = drawn(times.gemm);
  PowerLimit limit{std::min(kMostDraw, gemm / of_peak), drawn(times.attention), 0, kIdle, window_ns};
  const double products = times.product_share * times.mixed_gemm, memory = 1 - times.product_share;
  const double left = products * gemm / drawn(times.mixed_gemm);
  limit.memory = memory <= 0 ? kIdle : std::clamp((products + memory - left) / memory, kIdle, 1.0);
  return limit;
}

}  // namespace tandem
