#include "calibration/probe.hpp"

#include <algorithm>
#include <cmath>

#include "calibration/design.hpp"
#include "calibration/fit_profile.hpp"
#include "calibration/op_times.hpp"
#include "calibration/workbench.hpp"
#include "runtime/machine_probe.hpp"

namespace tandem {
namespace {

constexpr int kRepeats = 9;
constexpr std::int64_t kCpuCopyBytes = std::int64_t{64} << 20;
constexpr GemmSize kCpuProduct = {512, 2048, 512};  // a GFLOP: about 10 ms of one core

ProbeFigure rate(double amount, const std::vector<double>& ns) {
  const Summary summary = summarize(ns);
  return {amount / summary.median * 1e9, summary.spread()};
}

ProbeFigure probe_product(const ProbeDesign& design) {
  const KernelTime time = time_gemms(design.site, {design.product}, kRepeats).front();
  return {static_cast<double>(time.kernel.flops) / time.ns.median * 1e9, time.ns.spread()};
}

// The first copy meets pages that nobody has touched.
ProbeFigure probe_copies(Workbench& bench, Engine lane, std::int64_t bytes) {
  for (int i = 0; i <= kRepeats; ++i) bench.add_copy(lane, bench.scratch_offset(), bytes);
  const std::vector<Event> events = bench.execute().events;
  std::vector<double> ns;
  for (std::size_t i = 1; i < events.size(); ++i) ns.push_back(duration_ns(events[i]));
  return rate(static_cast<double>(bytes), ns);
}

// A sample is a pass over all of the network's parameters, so that none of them is in a cache when its turn comes.
ProbeFigure probe_optimizer(Workbench& bench) {
  std::vector<OpId> updates;
  double parameters = 0;
  for (const OpId id : bench.ops()) {
    const Work& work = bench.graph().work_of(bench.graph().op(id));
    if (!bench.graph().op(id).may_run_on(Engine::CpuOptimizer) || !is_optimizer(work)) continue;
    updates.push_back(id);
    parameters += static_cast<double>(work.kernels.front().elements);
  }
  copy_operands_to_host(bench, updates);
  std::vector<double> ns;
  for (int pass = 0; pass <= kRepeats; ++pass) {
    for (const OpId id : updates) bench.add_run(id, Engine::CpuOptimizer);
    double sum = 0;
    for (const Event& event : bench.execute().events) sum += duration_ns(event);
    if (pass > 0) ns.push_back(sum);
  }
  return rate(parameters, ns);
}

ProbeFigure joined(const ProbeFigure& a, const ProbeFigure& b) {
  const double mean = (a.per_s + b.per_s) / 2;
  const double apart = mean > 0 ? std::abs(a.per_s - b.per_s) / mean : 0;
  return {mean, apart + std::max(a.spread, b.spread)};
}

}  // namespace

ProbeDesign cpu_probe(std::int32_t cores) {
  return {{nullptr, false, DType::F32, 1}, kCpuProduct, contention_trial(cores), &torch_library, kCpuCopyBytes};
}

ProbeDesign device_probe(const std::shared_ptr<Device>& device, const DeviceDesign& design) {
  return {{device, design.cuda, design.type, 1},
          design.peak_product,
          design.contention,
          design.library,
          design.probe_copy_bytes};
}

ProbeDesign probe_of(const std::shared_ptr<Device>& device) {
  const std::int32_t cores = probe_machine().cores;
  return device ? device_probe(device, gpu_design(/*quick=*/true, cores)) : cpu_probe(cores);
}

Probe run_probe(const ProbeDesign& design) {
  Workbench bench(design.network.scenario, design.copy_bytes, {design.site.device, design.library});
  Probe probe;
  probe.h2d = probe_copies(bench, Engine::H2D, design.copy_bytes);
  probe.d2h = probe_copies(bench, Engine::D2H, design.copy_bytes);
  probe.cpu_optimizer = probe_optimizer(bench);
  probe.gemm = probe_product(design);
  return probe;
}

Probe joined(const Probe& a, const Probe& b) {
  return {joined(a.gemm, b.gemm), joined(a.h2d, b.h2d), joined(a.d2h, b.d2h), joined(a.cpu_optimizer, b.cpu_optimizer)};
}

}  // namespace tandem
