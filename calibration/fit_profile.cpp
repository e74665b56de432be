#include "calibration/fit_profile.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "calibration/curves.hpp"
#include "calibration/statistics.hpp"
#include "core/base/check.hpp"
#include "core/machine/attention.hpp"
#include "core/machine/cost_model.hpp"
#include "core/machine/gemm.hpp"

namespace tandem {
namespace {

constexpr double kNsPerS = 1e9;

TierInfo& tier(HardwareProfile& profile, Tier which) { return profile.tiers[static_cast<std::size_t>(which)]; }

using Amounts = std::vector<std::pair<double, double>>;  // an amount, and nanoseconds or a rate

// Amounts and their rates without the overhead, of those that take long enough to say something of the rate. Where
// noise hides that of all of them, of the largest as it is.
Amounts rates_beyond(const Amounts& timed, double overhead_ns) {
  Amounts rates;
  for (const auto& [amount, ns] : timed)
    if (ns > kOverheadShare * overhead_ns) rates.emplace_back(amount, amount / (ns - overhead_ns));
  if (!rates.empty()) return rates;
  const auto& [amount, ns] = *std::max_element(timed.begin(), timed.end());
  return {{amount, amount / ns}};
}

// The median where several are as large.
double rate_of_largest(const Amounts& rates) {
  const double largest = std::max_element(rates.begin(), rates.end())->first;
  std::vector<double> of_largest;
  for (const auto& [amount, rate] : rates)
    if (amount == largest) of_largest.push_back(rate);
  return quantile(std::move(of_largest), 0.5);
}

// latency + bytes / (bandwidth x efficiency): the smallest copy is nearly all latency; the largest reaches the
// bandwidth.
CopyRate copy_rate(const std::vector<CopyTime>& times) {
  CHECK(times.size() > 1, times.size());
  CopyRate rate;
  const double last_rate = static_cast<double>(times.back().bytes) / times.back().ns.median;
  const CopyTime& first = times.front();
  const double latency_ns = std::max(0.0, first.ns.median - static_cast<double>(first.bytes) / last_rate);
  rate.latency_ns = std::llround(latency_ns);
  std::vector<std::pair<double, double>> points;
  for (const CopyTime& time : times)
    points.emplace_back(static_cast<double>(time.bytes),
                        static_cast<double>(time.bytes) / std::max(1.0, time.ns.median - latency_ns));
  rate.bytes_per_s = points.back().second * kNsPerS;
  rate.efficiency = efficiency_curve(points, points.back().second);
  return rate;
}

}  // namespace

double machine_factor(const SlowDown& slow_down) { return std::max(1.0, slow_down.own_factor); }

bool is_optimizer(const Work& work) {
  return work.kernels.size() == 1 && work.kernels.front().kind == KernelKind::Optimizer;
}

double cpu_optimizer_bytes_per_s(const std::vector<OpTime>& ops) {
  Amounts rates;
  for (const OpTime& time : ops) {
    if (time.engine != Engine::CpuOptimizer || !is_optimizer(time.work)) continue;
    const auto moved = static_cast<double>(CostModel::memory_bytes(time.work));
    rates.emplace_back(moved, moved / time.ns.median * kNsPerS);
  }
  return rates.empty() ? 0 : rate_of_largest(rates);
}

void fit_copies(const CopyTimes& times, HardwareProfile& profile) {
  profile.h2d = copy_rate(times.h2d);
  profile.d2h = copy_rate(times.d2h);
  if (!times.pageable_h2d.empty()) profile.pageable_h2d = copy_rate(times.pageable_h2d);
  if (!times.pageable_d2h.empty()) profile.pageable_d2h = copy_rate(times.pageable_d2h);
  // Two lanes never reach less than the faster one alone.
  profile.pcie_bytes_per_s = std::max({times.both_bytes_per_s, profile.h2d.bytes_per_s, profile.d2h.bytes_per_s});
}

void fit_disk(const std::vector<CopyTime>& read, const std::vector<CopyTime>& write, HardwareProfile& profile) {
  profile.disk_read = copy_rate(read);
  profile.disk_write = copy_rate(write);
}

namespace {

// Of updates of parameters: those that took much longer than others of as many were disturbed, by other programs on the
// machine, say. They are left out: a machine is disturbed for seconds, and so are all networks of that time.
Amounts undisturbed(const Amounts& timed) {
  constexpr double kSameSize = 1.6, kQuieterQuarter = 0.25, kMostOfQuieter = 1.25;
  Amounts kept;
  for (const auto& [amount, ns] : timed) {
    std::vector<double> costs;
    for (const auto& [other, other_ns] : timed)
      if (other < amount * kSameSize && amount < other * kSameSize) costs.push_back(other_ns / other);
    if (ns / amount <= kMostOfQuieter * quantile(costs, kQuieterQuarter)) kept.emplace_back(amount, ns);
  }
  return kept;
}

}  // namespace

void fit_cpu_optimizer(const std::vector<OpTime>& times, HardwareProfile& profile) {
  Amounts timed;
  double least_ns = 0, bytes = 0, elements = 0;
  for (const OpTime& time : times) {
    if (time.engine != Engine::CpuOptimizer || time.held_out || !is_optimizer(time.work)) continue;
    const Kernel& update = time.work.kernels.front();
    least_ns = least_ns == 0 ? time.ns.median : std::min(least_ns, time.ns.median);
    timed.emplace_back(static_cast<double>(update.elements), time.ns.median);
    bytes += static_cast<double>(update.bytes), elements += static_cast<double>(update.elements);
  }
  CHECK(!timed.empty(), "no optimizer op was timed on the CPU");
  timed = undisturbed(timed);
  // The smallest is nearly all overhead, which is the command's and not the rate's.
  const auto points = rates_beyond(timed, least_ns);
  profile.cpu_op_ns = std::llround(least_ns);
  const double best = rate_of_largest(points);
  profile.cpu_optimizer_parameters_per_s = best * kNsPerS;
  profile.cpu_optimizer_bytes = elements > 0 ? bytes / elements : 0;
  profile.cpu_optimizer_efficiency = efficiency_curve(points, best);
}

void fit_slow_downs(const std::vector<SlowDown>& slow_downs, const std::vector<OpTime>& ops, HardwareProfile& profile) {
  const auto factor = [&](Engine lane, Engine other) {
    for (const SlowDown& s : slow_downs)
      if (s.lane == lane && s.others == std::vector<Engine>{other}) return machine_factor(s);
    return 1.0;
  };
  // What the optimizer on the CPU and a copy move at once: the most that two cores were seen to ask of the memory.
  const double optimizer_bytes_per_s = cpu_optimizer_bytes_per_s(ops);
  const double together = optimizer_bytes_per_s / factor(Engine::CpuOptimizer, Engine::H2D) +
                          profile.h2d.bytes_per_s / factor(Engine::H2D, Engine::CpuOptimizer);
  const double shared = std::max({together, optimizer_bytes_per_s, profile.pcie_bytes_per_s});
  tier(profile, Tier::Device).bytes_per_s = tier(profile, Tier::HostPinned).bytes_per_s = shared;
  // Beyond shared bandwidths: what the compute lane and the others take from each other in caches.
  for (const SlowDown& s : slow_downs) {
    if (s.others.size() != 1) continue;
    const bool has_compute = s.lane == Engine::Compute || s.others.front() == Engine::Compute;
    if (has_compute && machine_factor(s) > 1) profile.interference[{s.lane, s.others.front()}] = machine_factor(s);
  }
}

void fit_kernels(const std::vector<KernelTime>& gemms, const std::vector<KernelTime>& attentions,
                 const std::vector<KernelTime>& memory, DType type, HardwareProfile& profile) {
  CHECK(!gemms.empty() && !attentions.empty() && !memory.empty());
  double peak = 0;
  for (const KernelTime& t : gemms) peak = std::max(peak, gemm_flops(t.kernel, profile.processors) / t.ns.median);
  profile.peak_flops[type] = peak * kNsPerS;
  // The smallest kernel moves next to nothing.
  const double launch_ns = memory.front().ns.median;
  profile.launch_ns = std::llround(launch_ns);
  const auto rates = [&](const std::vector<KernelTime>& times, auto amount) {
    Amounts timed;
    for (const KernelTime& t : times) timed.emplace_back(amount(t.kernel), t.ns.median);
    return rates_beyond(timed, launch_ns);
  };
  const auto flops = [&](const Kernel& k) { return gemm_flops(k, profile.processors); };
  const auto bytes = [](const Kernel& k) { return static_cast<double>(k.bytes); };
  profile.efficiency[KernelKind::Gemm] = efficiency_curve(rates(gemms, flops), peak);
  const auto of_attention = [&](const Kernel& k) { return attention_flops(k, profile.processors); };
  profile.efficiency[KernelKind::Attention] = efficiency_curve(rates(attentions, of_attention), peak);
  const double bandwidth = tier(profile, Tier::Device).bytes_per_s / kNsPerS;
  profile.efficiency[KernelKind::Memory] = efficiency_curve(rates(memory, bytes), bandwidth);
}

void fit_overlap(const std::vector<KernelTime>& cold, DType type, HardwareProfile& profile) {
  if (cold.empty()) return;
  const auto model_ns = [&](const Kernel& kernel, double overlap) {
    profile.overlap = overlap;
    return static_cast<double>(CostModel(profile).kernel_ns(kernel, type, Engine::Compute));
  };
  std::vector<double> overlaps;
  for (const KernelTime& t : cold) {
    const double hidden_ns = model_ns(t.kernel, 1), bare_ns = model_ns(t.kernel, 0);
    if (bare_ns > hidden_ns) overlaps.push_back((bare_ns - t.ns.median) / (bare_ns - hidden_ns));
  }
  profile.overlap = overlaps.empty() ? 1 : std::clamp(quantile(std::move(overlaps), 0.5), 0.0, 1.0);
}

void fit_device_optimizer(const std::vector<OpTime>& times, HardwareProfile& profile) {
  const double bandwidth = tier(profile, Tier::Device).bytes_per_s / kNsPerS;
  Amounts timed;
  double least_ns = 0;
  const auto counts = [](const OpTime& t) {
    return t.engine == Engine::Compute && !t.held_out && is_optimizer(t.work);
  };
  for (const OpTime& time : times)
    if (counts(time)) least_ns = least_ns == 0 ? time.ns.median : std::min(least_ns, time.ns.median);
  for (const OpTime& time : times) {
    if (counts(time)) timed.emplace_back(static_cast<double>(CostModel::memory_bytes(time.work)), time.ns.median);
  }
  CHECK(!timed.empty(), "no optimizer op was timed on the device");
  profile.op_ns = std::max<std::int64_t>(0, std::llround(least_ns) - profile.launch_ns);
  profile.efficiency[KernelKind::Optimizer] = efficiency_curve(rates_beyond(timed, least_ns), bandwidth);
}

}  // namespace tandem
