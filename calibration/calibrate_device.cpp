#include <algorithm>
#include <cmath>
#include <memory>

#include "calibration/cpu_compute.hpp"
#include "calibration/device_picture_times.hpp"
#include "calibration/gpu_design.hpp"
#include "calibration/measure.hpp"
#include "calibration/media_times.hpp"
#include "calibration/probe.hpp"
#include "calibration/text.hpp"
#include "calibration/triad_times.hpp"
#include "calibration/update_turns.hpp"
#include "core/base/errors.hpp"
#include "runtime/host_memory.hpp"

namespace tandem {
namespace {

constexpr double kNsPerS = 1e9, kGiB = 1 << 30;
// Of the device's free memory: what libraries take outside of arenas.
constexpr std::int64_t kOutsideArenas = std::int64_t{1} << 30;
constexpr int kTriadRepeats = 7, kPeakRepeats = 5, kThreadRepeats = 7;

TierInfo& tier(HardwareProfile& profile, Tier which) { return profile.tiers[static_cast<std::size_t>(which)]; }

std::string told(const DeviceFacts& facts) {
  std::string text = facts.name;
  if (!facts.driver.empty()) text += ", " + facts.driver;
  if (facts.clock_hz > 0)
    text += printed(", %lld MHz, memory %lld MHz", static_cast<long long>(facts.clock_hz / 1'000'000),
                    static_cast<long long>(facts.memory_clock_hz / 1'000'000));
  return text;
}

void set_capacities(const DeviceFacts& facts, const MachineFacts& machine, HardwareProfile& profile, Notes& notes) {
  tier(profile, Tier::Device).capacity_bytes = facts.free_bytes - std::min(kOutsideArenas, facts.free_bytes / 4);
  const std::int64_t limit = cgroup_limit_bytes();
  tier(profile, Tier::HostPinned).capacity_bytes = for_arenas(limit > 0 ? limit : machine.memory_bytes);
  if (limit == 0)
    notes.remark(
        "no control group limits host memory: its capacity is what the kernel shows, which a virtual machine "
        "may raise as it is used");
}

// Those of the CPU: copies and kernels need none of its cores.
void occupy_cores(HardwareProfile& profile) {
  profile.lane_cores[Engine::Loader] = 1;
  for (const Engine lane : {Engine::CpuCompute, Engine::CpuOptimizer})
    profile.lane_cores[lane] = Workbench::cpu_threads(profile.cores);
}

double rate_of(const std::vector<KernelTime>& product) {
  return static_cast<double>(product.front().kernel.flops) / product.front().ns.median * kNsPerS;
}

void measure_alignment(const KernelSite& site, const std::vector<LinearSize>& layers, HardwareProfile& profile,
                       const Notes& notes) {
  fit_alignment(time_linears(site, layers, kPeakRepeats), site.type, profile);
  for (const auto& [key, cost] : profile.alignment)
    if (key.first == site.type)
      notes.say(
          printed("  %s products along sizes that %d elements divide take %.3g times as long by their operands, "
                  "%.3g by their result",
                  std::string(name_of(site.type)).c_str(), key.second, cost.operands, cost.result));
}

void measure_device_kernels(const DeviceDesign& design, const std::shared_ptr<Device>& device, HardwareProfile& profile,
                            Notes& notes) {
  KernelSite site{device, design.cuda, design.type, 1};
  const KernelTimes times = measure_kernels(site, design.kernels, design.kernel_repeats, notes);
  fit_device_memory(times.memory, profile);
  fit_kernels(times.gemms, times.attentions, times.memory, design.type, profile);
  measure_power(site, design.power, profile, notes);
  measure_alignment(site, design.odd_layers, profile, notes);
  for (const DType type : design.other_types) {
    site.type = type;
    fit_peak(time_gemms(site, design.rate_products, kPeakRepeats), type, profile);
    measure_alignment(site, design.odd_layers, profile, notes);
    measure_product_draw(site, design.power, profile, notes);
    notes.say(printed("  %s: %.4g TFLOPS", std::string(name_of(type)).c_str(), profile.peak_flops[type] / 1e12));
  }
  const KernelSite host{nullptr, false, DType::F32, Workbench::cpu_threads(profile.cores)};
  profile.cpu_flops = rate_of(time_gemms(host, {design.cpu_product}, kPeakRepeats));
  notes.say(printed("  CPU: %.4g TFLOPS of fp32", profile.cpu_flops / 1e12));
}

// Copies, hand-over and slow-downs.
Measurements measure_lanes(const DeviceDesign& design, const BenchDevice& device, bool quick, HardwareProfile& profile,
                           Notes& notes) {
  Workbench bench(design.contention.scenario, design.copies.scratch_bytes, device, {}, true,
                  design.copies.pageable_bytes);
  if (bench.pinned_bytes() > 0)
    notes.say(printed("  pinning: %.3g s a GiB", bench.pinning_s() * kGiB / static_cast<double>(bench.pinned_bytes())));
  notes.say(printed("  loader: %.4g GB/s", bench.load_bytes_per_s() / 1e9));
  profile.loader_bytes_per_s = bench.load_bytes_per_s();
  Measurements figures;
  figures.copies = time_copies(bench, design.copies);
  figures.hand_over = time_hand_over(bench, quick);
  figures.slow_downs = time_slow_downs(bench, design.copies, quick);
  figures.launches = time_launches(design.launches, design.copies, device, quick);
  report_lanes(figures.copies, figures.hand_over, figures.slow_downs, notes);
  return figures;
}

// 1, 2, 3, 4, 6, 8, 12, ... and all.
std::vector<int> thread_counts(int all) {
  std::vector<int> counts{all};
  for (int power = 1; power < all; power *= 2)
    for (const int count : {power, power + power / 2})
      if (count < all) counts.push_back(count);
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

void measure_update_threads(const DeviceDesign& design, Device& device, HardwareProfile& profile, Notes& notes) {
  const std::vector<int> threads = thread_counts(Workbench::cpu_threads(profile.cores));
  const std::vector<Summary> rates =
      time_updates(threads, device.pinned_arena("updates", design.triad_bytes), kThreadRepeats);
  for (std::size_t i = 0; i < threads.size(); ++i) {
    notes.figure(printed("optimizer step by %d threads", threads[i]), rates[i], 1e9, "G parameters/s");
    profile.cpu_optimizer_threads.x.push_back(threads[i]);
    profile.cpu_optimizer_threads.y.push_back(rates[i].median / rates.back().median);
  }
}

// On a device that the network does not fit on, of a smaller one: caches then hold more of its states.
std::unique_ptr<UpdateTurns> update_turns(const DeviceDesign& design, const BenchDevice& device, Notes& notes) {
  try {
    return std::make_unique<UpdateTurns>(design.updates, device);
  } catch (const DeviceError& error) {
    notes.remark("updates of " + network_name(design.contention.scenario) + " instead of " +
                 network_name(design.updates.scenario) + ": " + error.what());
    return std::make_unique<UpdateTurns>(design.contention, device);
  }
}

// Whole ops of all networks, and after each a turn of updates on the CPU.
std::vector<OpTime> measure_networks(const DeviceDesign& design, const BenchDevice& device,
                                     const CalibrationOptions& options, Notes& notes) {
  const std::unique_ptr<UpdateTurns> updates = update_turns(design, device, notes);
  const auto next = [&](double share) {
    updates->take();
    if (options.progress) options.progress(share);
  };
  std::vector<OpTime> times = measure_ops({design.trials, design.passes, design.op_budget_ns, device}, next, notes);
  times.insert(times.end(), updates->times().begin(), updates->times().end());
  return times;
}

}  // namespace

Calibration calibrate_device(const CalibrationOptions& options, const std::shared_ptr<Device>& device,
                             const DeviceDesign& design) {
  Calibration out;
  Notes notes(options.quiet, out.remarks);
  HardwareProfile& profile = out.profile;
  const DeviceFacts facts = device->facts();
  out.conditions.begin = cpu_times_now();
  out.machine = probe_machine();
  out.source = told(facts) + "; " + out.machine.processor;
  out.description = facts.name + printed(" with %d CPU cores, as tandem calibrate found it.", out.machine.cores);
  profile.name = options.name;
  profile.gpu = design.cuda;
  profile.cores = out.machine.cores;
  profile.processors = facts.processors;
  set_capacities(facts, out.machine, profile, notes);
  occupy_cores(profile);
  notes.say(printed("%s, %d cores; %.4g GB on the device, %.4g GB on the host", out.source.c_str(), profile.cores,
                    static_cast<double>(tier(profile, Tier::Device).capacity_bytes) / 1e9,
                    static_cast<double>(tier(profile, Tier::HostPinned).capacity_bytes) / 1e9));
  const ProbeDesign probe = device_probe(device, design);
  out.conditions.first = probe_and_say(probe, notes);
  const BenchDevice bench_device{device, design.library};
  notes.say("copies, hand-over, slow-downs");
  Measurements measured = measure_lanes(design, bench_device, options.quick, profile, notes);
  notes.say("host memory");
  const Summary triad = time_triad(profile.cores, design.triad_bytes, kTriadRepeats);
  notes.figure("triad on all cores", triad, 1e9, "GB/s");
  measure_update_threads(design, *device, profile, notes);
  notes.say("kernels");
  measure_device_kernels(design, device, profile, notes);
  notes.say("the CPU beside the device");
  HardwareProfile host = profile;
  tier(host, Tier::HostPinned).bytes_per_s = triad.median;
  profile.cpu_compute = measure_cpu_compute(design.cpu_compute, host, bench_device, notes);
  notes.say("whole ops");
  measured.ops = measure_networks(design, bench_device, options, notes);
  notes.say("other updates");
  measured.updates = measure_ops({design.update_trials, kUpdatePasses, 0, bench_device, &time_update}, {}, notes);
  fit_copies(measured.copies, profile);
  fit_cpu_optimizer(measured.ops, profile);
  fit_host_memory(measured.slow_downs, measured.ops, triad.median, profile);
  fit_device_optimizer(measured.ops, profile);
  fit_bodies(measured.all_ops(), profile);
  fit_cpu_updates(measured.updates, profile);
  fit_launches_beside(measured.launches, measured.ops, profile);
  for (const std::string& line : launch_report(measured.launches, measured.ops, profile)) notes.say("  " + line);
  notes.say(printed("  optimizer on the CPU: %.4g G parameters/s; host memory: %.4g GB/s",
                    profile.cpu_optimizer_parameters_per_s / 1e9, tier(profile, Tier::HostPinned).bytes_per_s / 1e9));
  fit_hand_over(measured.hand_over, options.quick, profile, notes);
  notes.say("disk");
  measured.disk = measure_disk(options, profile, notes);
  measure_media(options, profile, notes);
  if (design.cuda) measure_device_pictures(device, options.quick, profile, notes);
  conclude(measured, probe, out, notes);
  return out;
}

}  // namespace tandem
