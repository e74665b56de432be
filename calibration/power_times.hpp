// What a device draws over its power limit, found from how much longer kernels take when they go on for long enough
// that it must lower its clock. Must not know ops; no power meter is read.
#pragma once

#include <utility>

#include "calibration/kernel_times.hpp"
#include "core/machine/profile.hpp"

namespace tandem {

struct PowerDesign {
  std::vector<GemmSize> gemms;  // in turns: some feel a lower clock more than others
  AttentionSize attention;
  std::int64_t additions = 0;  // elements of a memory kernel
  // A series goes on for `sustained_seconds`, after a rest of `seconds`, by whose end the clock is the one that holds
  // at first. 0: not measured.
  double seconds = 0, sustained_seconds = 0;
};

// The times over which an H200 averages what it draws: in an endless series of products its clock falls after 40 ms,
// and again, for a third of each second, after 0.8 s.
inline constexpr std::int64_t kBriefWindowNs = 40'000'000, kSustainedWindowNs = 300'000'000;

// How many times as long kernels take after some time without a pause as at first.
struct PowerTimes {
  double gemm = 1, attention = 1;
  // A series of single products and as much of memory kernels by turns, as in a training step: the share of the time
  // that products take at first, and how many times as long they take then, where memory kernels take as long as ever.
  // (With 5 ms of each by turns the clock is higher.)
  double product_share = 0, mixed_gemm = 1;
};
// After the design's `seconds`, and in the mean of a longer time.
struct PowerSeries {
  PowerTimes brief, sustained;
  double gemms_ns = 0;  // of the design's products, each once, at first
};
PowerSeries time_power(const KernelSite& site, const PowerDesign& design);

// Of the design's products alone: how many times as long they take in the mean of a longer time as at first, and their
// time at first, each once, in ns.
std::pair<double, double> time_product_power(const KernelSite& site, const PowerDesign& design);
// What products that take so many times as long draw over the device's limit, were they at their peak; no more than the
// limit where they take no longer.
double product_draw(double times_as_long, double of_peak);

// None where nothing takes longer. `of_peak`: the share of the peak that the timed products reached at first.
PowerLimit power_limit(const PowerTimes& times, double of_peak, std::int64_t window_ns);

}  // namespace tandem
