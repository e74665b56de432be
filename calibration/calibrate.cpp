#include "calibration/calibrate.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "calibration/disk_times.hpp"
#include "calibration/scheduler_times.hpp"
#include "calibration/text.hpp"

namespace tandem {
namespace {

constexpr int kKernelRepeats = 9, kPasses = 4, kQuickPasses = 2;
constexpr double kOpBudgetNs = 1.5e9, kQuickOpBudgetNs = 0.1e9;  // per network
constexpr std::int64_t kScratchBytes = std::int64_t{1} << 30, kQuickScratchBytes = std::int64_t{256} << 20;
// The stand-in for a device has this share of the machine's memory; the host tier the rest but for what the system and
// the program need.
constexpr double kDeviceShare = 0.25, kHostShare = 0.5;
// Of what is free on the scratch folder's disk.
constexpr double kDiskShare = 0.5;
// A figure whose samples spread further than this is named in the remarks.
constexpr double kNoisySpread = 0.25;

class Notes {
 public:
  Notes(bool quiet, std::vector<std::string>& remarks) : quiet_(quiet), remarks_(remarks) {}
  void say(const std::string& line) const {
    if (!quiet_) std::fprintf(stderr, "%s\n", line.c_str());
  }
  // Prints a figure, and remembers it where it is noisy.
  void figure(const std::string& what, const Summary& summary, double unit, const char* unit_name) {
    const std::string line = what + ": " + describe(summary, unit) + " " + unit_name;
    say("  " + line);
    if (summary.spread() > kNoisySpread) remarks_.push_back("noisy: " + line);
  }

 private:
  bool quiet_;
  std::vector<std::string>& remarks_;
};

void measure_kernels(HardwareProfile& profile, bool quick, Notes& notes) {
  const auto gemms = time_gemms(quick, kKernelRepeats);
  const auto attentions = time_attentions(quick, kKernelRepeats);
  const auto memory = time_memory_kernels(quick, kKernelRepeats);
  for (const auto& times : {gemms, attentions})
    for (const KernelTime& t : times)
      notes.figure(printed("%s of %.3g MFLOP", t.kernel.kind == KernelKind::Gemm ? "gemm" : "attention",
                           static_cast<double>(t.kernel.flops) / 1e6),
                   t.ns, 1e3, "us");
  for (const KernelTime& t : memory)
    notes.figure(printed("memory kernel of %lld B", static_cast<long long>(t.kernel.bytes)), t.ns, 1e3, "us");
  fit_kernels(gemms, attentions, memory, profile);
}

std::vector<OpTime> measure_ops(const CalibrationOptions& options, std::int32_t cores, Notes& notes) {
  const std::vector<Trial> trials = designed_trials(options.quick, cores);
  std::vector<OpTime> times;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    for (OpTime& time :
         time_ops(trials[i], options.quick ? kQuickPasses : kPasses, options.quick ? kQuickOpBudgetNs : kOpBudgetNs))
      times.push_back(std::move(time));
    if (options.progress) options.progress(static_cast<double>(i + 1) / static_cast<double>(trials.size()));
  }
  int outliers = 0, samples = 0;
  for (const OpTime& time : times) outliers += time.ns.outliers, samples += time.ns.count;
  notes.say(printed("  %zu ops of %zu networks, %d samples, %d of them outliers", times.size(), trials.size(), samples,
                    outliers));
  return times;
}

void report_lanes(const CopyTimes& copies, const HandOver& hand_over, const std::vector<SlowDown>& slow_downs,
                  Notes& notes) {
  for (const auto& [lane, times] : {std::pair("h2d", &copies.h2d), std::pair("d2h", &copies.d2h)})
    for (const CopyTime& t : *times)
      notes.figure(printed("%s copy of %lld B", lane, static_cast<long long>(t.bytes)), t.ns, 1e3, "us");
  notes.say(printed("  both directions at once: %.4g GB/s", copies.both_bytes_per_s / 1e9));
  notes.figure("submit, per command", hand_over.submit_ns, 1e3, "us");
  notes.figure("wake of a lane that slept", hand_over.wake_ns, 1e3, "us");
  notes.figure("completion to its being seen", hand_over.seen_ns, 1e3, "us");
  for (const SlowDown& s : slow_downs) {
    std::string what = std::string(name_of(s.lane)) + " beside";
    for (const Engine other : s.others) what += " " + std::string(name_of(other));
    notes.figure(what, s.factor, 1, "times as long");
  }
}

void measure_disk(const CalibrationOptions& options, HardwareProfile& profile, Calibration& out, Notes& notes) {
  const DiskTimes times = time_disk(options.scratch_folder, options.quick);
  for (const auto& [what, sizes] : {std::pair("read", &times.read), std::pair("write", &times.write)})
    for (const CopyTime& t : *sizes)
      notes.figure(printed("disk %s of %lld B", what, static_cast<long long>(t.bytes)), t.ns, 1e6, "ms");
  std::error_code error;
  const auto space = std::filesystem::space(options.scratch_folder, error);
  if (!error)
    profile.tiers[static_cast<std::size_t>(Tier::Disk)].capacity_bytes =
        std::llround(kDiskShare * static_cast<double>(space.available));
  if (!times.note.empty()) out.remarks.push_back(times.note);
  fit_disk(times.read, times.write, profile);
}

double loader_bytes_per_s(Workbench& bench) {
  double bytes = 0, ns = 0;
  for (const OpId id : bench.batch_loads()) {
    bench.add_run(id, Engine::Loader);
    for (const Write& write : bench.graph().op(id).writes)
      bytes += static_cast<double>(bench.graph().value(write.value).bytes);
  }
  for (const Event& event : bench.execute().events) ns += static_cast<double>(event.finished.ns - event.started.ns);
  return bytes / ns * 1e9;
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
  out.machine = probe_machine();
  profile.name = options.name;
  profile.cores = out.machine.cores;
  set_capacities(out, profile);
  occupy_cores(profile);
  notes.say(printed("%s, %d cores, %.4g GB (%s)", out.machine.processor.c_str(), out.machine.cores,
                    static_cast<double>(out.machine.memory_bytes) / 1e9, out.machine.memory_source.c_str()));
  const std::int64_t scratch_bytes = options.quick ? kQuickScratchBytes : kScratchBytes;
  notes.say("copies, hand-over, slow-downs");
  Workbench bench(contention_trial(out.machine.cores).scenario, scratch_bytes);
  const CopyTimes copies = time_copies(bench, scratch_bytes, options.quick);
  const HandOver hand_over = time_hand_over(bench, options.quick);
  const std::vector<SlowDown> slow_downs = time_slow_downs(bench, scratch_bytes, options.quick);
  report_lanes(copies, hand_over, slow_downs, notes);
  notes.say("whole ops");
  const std::vector<OpTime> ops = measure_ops(options, out.machine.cores, notes);
  fit_copies(copies, profile);
  fit_cpu_optimizer(ops, profile);
  fit_slow_downs(slow_downs, ops, profile);
  notes.say("kernels");
  measure_kernels(profile, options.quick, notes);
  fit_device_optimizer(ops, profile);
  fit_bodies(ops, profile);
  profile.wake_ns = std::llround(hand_over.wake_ns.median);
  profile.event_ns = std::llround(hand_over.seen_ns.median);
  const Summary decision_ns = time_decisions(options.quick);
  notes.figure("scheduler's own time, per command", decision_ns, 1e3, "us");
  profile.dispatch_ns = std::llround(hand_over.submit_ns.median + decision_ns.median);
  profile.loader_bytes_per_s = loader_bytes_per_s(bench);
  notes.say("disk");
  measure_disk(options, profile, out, notes);
  out.residuals = residuals(ops, profile);
  return out;
}

std::vector<std::string> residual_report(const std::vector<Residual>& residuals) {
  std::vector<std::string> lines;
  const auto line = [&](const std::string& what, const std::vector<double>& errors) {
    if (!errors.empty())
      lines.push_back(printed("%s: %zu ops, median error %.1f%%, largest %.1f%%", what.c_str(), errors.size(),
                              100 * quantile(errors, 0.5), 100 * quantile(errors, 1)));
  };
  std::vector<std::string> bodies;
  for (const Residual& r : residuals)
    if (std::find(bodies.begin(), bodies.end(), r.body) == bodies.end()) bodies.push_back(r.body);
  std::vector<double> fitted, held_out;
  for (const std::string& body : bodies) {
    for (const Engine engine : {Engine::Compute, Engine::CpuOptimizer}) {
      std::vector<double> errors;
      for (const Residual& r : residuals)
        if (r.body == body && r.engine == engine) {
          errors.push_back(std::abs(r.error()));
          (r.held_out ? held_out : fitted).push_back(errors.back());
        }
      line(body + " on " + std::string(name_of(engine)), errors);
    }
  }
  line("all fitted", fitted);
  line("all held out", held_out);
  return lines;
}

}  // namespace tandem
