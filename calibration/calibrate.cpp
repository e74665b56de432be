#include "calibration/calibrate.hpp"

#include <cmath>

#include "calibration/cpu_compute.hpp"
#include "calibration/measure.hpp"
#include "calibration/media_times.hpp"
#include "calibration/probe.hpp"
#include "calibration/text.hpp"

namespace tandem {
namespace {

constexpr int kKernelRepeats = 9, kPasses = 4, kQuickPasses = 2;
constexpr double kOpBudgetNs = 1.5e9, kQuickOpBudgetNs = 0.1e9;  // per network
constexpr std::int64_t kScratchBytes = std::int64_t{1} << 30, kQuickScratchBytes = std::int64_t{256} << 20;
constexpr std::int64_t kCopyBytes = std::int64_t{256} << 20, kQuickCopyBytes = std::int64_t{64} << 20;
constexpr std::int64_t kBucketBytes = std::int64_t{16} << 20;
// The stand-in for a device has this share of the machine's memory; the host tier the rest but for what the system and
// the program need.
constexpr double kDeviceShare = 0.25, kHostShare = 0.5;

void measure_kernels(HardwareProfile& profile, bool quick, Notes& notes) {
  const KernelTimes times = measure_kernels({}, designed_kernels(quick), kKernelRepeats, notes);
  fit_kernels(times.gemms, times.attentions, times.memory, DType::F32, profile);
  fit_overlap(times.cold, DType::F32, profile);
  profile.cpu_flops = profile.peak_flops[DType::F32];
}

// Every lane's worker is a thread: while it runs a command it wants a core of its own, and those of the CPU lanes one
// for each of their intra-operator threads.
void occupy_cores(HardwareProfile& profile) {
  for (const Engine lane : {Engine::Compute, Engine::H2D, Engine::D2H, Engine::Loader}) profile.lane_cores[lane] = 1;
  for (const Engine lane : {Engine::CpuCompute, Engine::CpuOptimizer})
    profile.lane_cores[lane] = Workbench::cpu_threads(profile.cores);
}

void set_capacities(const Calibration& calibration, HardwareProfile& profile) {
  const auto bytes = static_cast<double>(calibration.machine.memory_bytes);
  profile.tiers[static_cast<std::size_t>(Tier::Device)].capacity_bytes = std::llround(kDeviceShare * bytes);
  profile.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = std::llround(kHostShare * bytes);
}

}  // namespace

Calibration calibrate_cpu(const CalibrationOptions& options) {
  Calibration out;
  Notes notes(options.quiet, out.remarks);
  HardwareProfile& profile = out.profile;
  out.conditions.begin = cpu_times_now();
  out.machine = probe_machine();
  out.source = out.machine.processor;
  out.description = "This machine's CPU as a stand-in for a device, as tandem calibrate found it.";
  profile.name = options.name;
  profile.cores = out.machine.cores;
  set_capacities(out, profile);
  occupy_cores(profile);
  notes.say(printed("%s, %d cores, %.4g GB (%s)", out.machine.processor.c_str(), out.machine.cores,
                    static_cast<double>(out.machine.memory_bytes) / 1e9, out.machine.memory_source.c_str()));
  const ProbeDesign probe = cpu_probe(out.machine.cores);
  out.conditions.first = probe_and_say(probe, notes);
  const std::int64_t scratch_bytes = options.quick ? kQuickScratchBytes : kScratchBytes;
  notes.say("copies, hand-over, slow-downs");
  Workbench bench(contention_trial(out.machine.cores).scenario, scratch_bytes);
  const CopyDesign design = {scratch_bytes, options.quick ? kQuickCopyBytes : kCopyBytes, kBucketBytes};
  Measurements measured;
  measured.copies = time_copies(bench, design);
  measured.hand_over = time_hand_over(bench, options.quick);
  measured.slow_downs = time_slow_downs(bench, design, options.quick);
  report_lanes(measured.copies, measured.hand_over, measured.slow_downs, notes);
  notes.say("whole ops");
  OpDesign trials{designed_trials(options.quick, out.machine.cores),
                  options.quick ? kQuickPasses : kPasses,
                  options.quick ? kQuickOpBudgetNs : kOpBudgetNs,
                  {}};
  measured.ops = measure_ops(trials, options.progress, notes);
  notes.say("other updates");
  OpDesign updates{designed_update_trials(options.quick, out.machine.cores), kUpdatePasses, 0, {}, &time_update};
  measured.updates = measure_ops(updates, {}, notes);
  fit_copies(measured.copies, profile);
  fit_cpu_optimizer(measured.ops, profile);
  fit_slow_downs(measured.slow_downs, measured.ops, profile);
  notes.say("kernels");
  measure_kernels(profile, options.quick, notes);
  fit_device_optimizer(measured.ops, profile);
  fit_bodies(measured.all_ops(), profile);
  notes.say("the CPU beside its stand-in for a device");
  profile.cpu_compute =
      measure_cpu_compute(cpu_compute_design(options.quick, profile.cores, DType::F32), profile, {}, notes);
  fit_cpu_updates(measured.updates, profile);
  fit_hand_over(measured.hand_over, options.quick, profile, notes);
  profile.loader_bytes_per_s = bench.load_bytes_per_s();
  notes.say("disk");
  measured.disk = measure_disk(options, profile, notes);
  measure_media(options, profile, notes);
  conclude(measured, probe, out, notes);
  return out;
}

}  // namespace tandem
