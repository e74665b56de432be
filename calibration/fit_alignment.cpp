#include <algorithm>
#include <map>
#include <tuple>

#include "calibration/fit_profile.hpp"
#include "calibration/statistics.hpp"
#include "core/base/check.hpp"
#include "core/machine/cost_model.hpp"
#include "core/machine/gemm.hpp"

namespace tandem {
namespace {

// A factor below is noise: what is not given costs nothing.
constexpr double kLeastFactor = 1.02;

std::int64_t aligned(std::int64_t size) { return (size + kAligned - 1) / kAligned * kAligned; }

std::tuple<std::int64_t, std::int64_t, std::int64_t> aligned_sizes(const Kernel& k) {
  return {aligned(k.m), aligned(k.n), aligned(k.k)};
}

double factor_of(const std::vector<double>& times_as_long) {
  const double factor = times_as_long.empty() ? 1 : quantile(times_as_long, 0.5);
  return factor < kLeastFactor ? 1 : factor;
}

}  // namespace

void fit_alignment(const std::vector<KernelTime>& products, DType type, HardwareProfile& profile) {
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, double> aligned_ns;
  for (const KernelTime& t : products)
    if (t.kernel.operand_alignment == kAligned && t.kernel.result_alignment == kAligned)
      aligned_ns[aligned_sizes(t.kernel)] = t.ns.median;
  std::map<std::int16_t, std::vector<double>> operands, result;  // times as long, by alignment
  for (const KernelTime& t : products) {
    const Kernel& k = t.kernel;
    const auto found = aligned_ns.find(aligned_sizes(k));
    CHECK(found != aligned_ns.end(), "no aligned product of about that size", k.m, k.n, k.k);
    const double ratio = t.ns.median / found->second;
    if (k.operand_alignment < kAligned)
      operands[k.operand_alignment].push_back(ratio);
    else if (k.result_alignment < kAligned)
      result[k.result_alignment].push_back(ratio);
  }
  for (std::int16_t elements = 1; elements < kAligned; elements *= 2) {
    const AlignmentCost cost{factor_of(operands[elements]), factor_of(result[elements])};
    if (cost != AlignmentCost{}) profile.alignment[{type, elements}] = cost;
  }
}

void fit_peak(const std::vector<KernelTime>& products, DType type, HardwareProfile& profile) {
  const Curve& efficiency = profile.efficiency.at(KernelKind::Gemm);
  std::vector<double> peaks;
  for (const KernelTime& t : products) {
    const double flops = gemm_flops(t.kernel, profile.processors);
    const double ns = std::max(1.0, t.ns.median - static_cast<double>(profile.launch_ns));
    peaks.push_back(flops / efficiency.at(flops) / ns * 1e9);
  }
  CHECK(!peaks.empty(), name_of(type));
  profile.peak_flops[type] = quantile(peaks, 0.5);
}

}  // namespace tandem
