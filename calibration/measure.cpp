#include "calibration/measure.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "calibration/scheduler_times.hpp"
#include "calibration/text.hpp"
#include "core/base/errors.hpp"
#include "core/graph/kernels.hpp"
#include "core/machine/gemm.hpp"
#include "report/csv_cell.hpp"
#include "runtime/fingerprint.hpp"

namespace tandem {
namespace {

// A figure whose samples spread further than this is named in the remarks.
constexpr double kNoisySpread = 0.25;
// Of what is free on the scratch folder's disk.
constexpr double kDiskShare = 0.5;

// A clock's offset may make a short wait look negative.
std::int64_t duration_ns(double ns) { return std::max<std::int64_t>(0, std::llround(ns)); }

// What the design's products, tiles that are not full as much as full ones, reach of the peak.
double share_of_peak(const PowerDesign& design, double gemms_ns, DType type, const HardwareProfile& profile) {
  double flops = 0;
  for (const GemmSize& g : design.gemms) flops += gemm_flops(gemm(g.m, g.n, g.k, type), profile.processors);
  return flops / gemms_ns * 1e9 / profile.peak_flops.at(type);
}

}  // namespace

void Notes::say(const std::string& line) const {
  if (!quiet_) std::fprintf(stderr, "%s\n", line.c_str());
}

void Notes::figure(const std::string& what, const Summary& summary, double unit, const char* unit_name) {
  const std::string line = what + ": " + describe(summary, unit) + " " + unit_name;
  say("  " + line);
  ++figures_;
  if (summary.spread() > kNoisySpread) noisy_.push_back({what, summary.spread()});
}

void Notes::remark_on_noise() {
  constexpr std::size_t kNamed = 3;
  if (noisy_.empty()) return;
  std::stable_sort(noisy_.begin(), noisy_.end(), [](const Noisy& a, const Noisy& b) { return a.spread > b.spread; });
  std::string text = printed("noisy: repeats of %zu of %d figures spread over more than %.0f%%: ", noisy_.size(),
                             figures_, 100 * kNoisySpread);
  for (std::size_t i = 0; i < std::min(kNamed, noisy_.size()); ++i)
    text += (i == 0 ? "" : ", ") + noisy_[i].what + printed(" (%.0f%%)", 100 * noisy_[i].spread);
  remark(text + (noisy_.size() > kNamed ? printed(" and %zu more", noisy_.size() - kNamed) : ""));
}

void measure_power(const KernelSite& site, const PowerDesign& design, HardwareProfile& profile, Notes& notes) {
  if (design.seconds <= 0) return;
  const PowerSeries series = time_power(site, design);
  const double of_peak = share_of_peak(design, series.gemms_ns, site.type, profile);
  profile.power = power_limit(series.brief, of_peak, kBriefWindowNs);
  profile.sustained_power = power_limit(series.sustained, of_peak, kSustainedWindowNs);
  for (const auto& [when, times] : {std::pair{"soon", series.brief}, std::pair{"for long", series.sustained}})
    notes.say(
        printed("  without a pause, products %s take %.3f times as long as at first, attention %.3f; products "
                "between memory kernels (%.0f%% of the time) %.3f",
                when, times.gemm, times.attention, 100 * (1 - times.product_share), times.mixed_gemm));
}

void measure_product_draw(const KernelSite& site, const PowerDesign& design, HardwareProfile& profile,
                          const Notes& notes) {
  if (design.seconds <= 0 || profile.sustained_power.window_ns == 0) return;
  const auto [times_as_long, first_ns] = time_product_power(site, design);
  const double draw = product_draw(times_as_long, share_of_peak(design, first_ns, site.type, profile));
  profile.product_draw[site.type] = draw / profile.sustained_power.gemm;
  notes.say(printed("  without a pause, %s products take %.3f times as long as at first",
                    std::string(name_of(site.type)).c_str(), times_as_long));
}

KernelTimes measure_kernels(const KernelSite& site, const KernelDesign& design, int repeats, Notes& notes) {
  KernelTimes times{time_gemms(site, design.gemms, repeats), time_attentions(site, design.attentions, repeats),
                    time_memory_kernels(site, design.additions, repeats),
                    time_cold_linears(site, design.cold_linears, design.cold_bytes, repeats)};
  for (const auto& some : {times.gemms, times.attentions})
    for (const KernelTime& t : some)
      notes.figure(printed("%s of %.3g MFLOP", t.kernel.kind == KernelKind::Gemm ? "gemm" : "attention",
                           static_cast<double>(t.kernel.flops) / 1e6),
                   t.ns, 1e3, "us");
  for (const KernelTime& t : times.memory)
    notes.figure(printed("memory kernel of %lld B", static_cast<long long>(t.kernel.bytes)), t.ns, 1e3, "us");
  for (const KernelTime& t : times.cold)
    notes.figure(printed("gemm of %.3g MFLOP by %.3g MB from memory", static_cast<double>(t.kernel.flops) / 1e6,
                         static_cast<double>(t.kernel.bytes) / 1e6),
                 t.ns, 1e3, "us");
  return times;
}

std::vector<OpTime> measure_ops(const OpDesign& design, const std::function<void(double)>& progress, Notes& notes) {
  std::vector<OpTime> times;
  std::string failure;
  for (std::size_t i = 0; i < design.trials.size(); ++i) {
    try {
      for (OpTime& time : design.time(design.trials[i], design.passes, design.budget_ns, design.device))
        times.push_back(std::move(time));
    } catch (const DeviceError& error) {
      failure = error.what();
      notes.remark("not measured: " + network_name(design.trials[i].scenario) + ": " + failure);
    }
    if (progress) progress(static_cast<double>(i + 1) / static_cast<double>(design.trials.size()));
  }
  if (times.empty()) throw DeviceError("calibration: no network ran: " + failure);
  int outliers = 0, samples = 0;
  for (const OpTime& time : times) outliers += time.ns.outliers, samples += time.ns.count;
  notes.say(printed("  %zu ops of %zu networks, %d samples, %d of them outliers", times.size(), design.trials.size(),
                    samples, outliers));
  return times;
}

void report_lanes(const CopyTimes& copies, const HandOver& hand_over, const std::vector<SlowDown>& slow_downs,
                  Notes& notes) {
  for (const auto& [lane, times] :
       {std::pair("h2d", &copies.h2d), std::pair("d2h", &copies.d2h), std::pair("pageable h2d", &copies.pageable_h2d),
        std::pair("pageable d2h", &copies.pageable_d2h)})
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

Probe probe_and_say(const ProbeDesign& design, Notes& notes) {
  notes.say("probe");
  const Probe probe = run_probe(design);
  for (const std::string& figure : figures(probe)) notes.say("  " + figure);
  return probe;
}

DiskTimes measure_disk(const CalibrationOptions& options, HardwareProfile& profile, Notes& notes) {
  const DiskTimes times = time_disk(options.scratch_folder, options.quick);
  for (const auto& [what, sizes] : {std::pair("read", &times.read), std::pair("write", &times.write)})
    for (const CopyTime& t : *sizes)
      notes.figure(printed("disk %s of %lld B", what, static_cast<long long>(t.bytes)), t.ns, 1e6, "ms");
  notes.figure("disk, reads beside writes, together", times.both_bytes_per_s, 1e9, "GB/s");
  std::error_code error;
  const auto space = std::filesystem::space(options.scratch_folder, error);
  if (!error)
    profile.tiers[static_cast<std::size_t>(Tier::Disk)].capacity_bytes =
        std::llround(kDiskShare * static_cast<double>(space.available));
  if (!times.note.empty()) notes.remark(times.note);
  fit_disk(times.read, times.write, profile);
  // No more together than the quicker one alone: they take turns, which needs no figure.
  if (const double both = times.both_bytes_per_s.median;
      both > std::max(profile.disk_read.bytes_per_s, profile.disk_write.bytes_per_s))
    profile.tiers[static_cast<std::size_t>(Tier::Disk)].bytes_per_s = both;
  return times;
}

void fit_hand_over(const HandOver& hand_over, bool quick, HardwareProfile& profile, Notes& notes) {
  profile.wake_ns = duration_ns(hand_over.wake_ns.median);
  profile.event_ns = duration_ns(hand_over.seen_ns.median);
  const Summary decision_ns = time_decisions(quick);
  notes.figure("scheduler's own time, per command", decision_ns, 1e3, "us");
  profile.dispatch_ns = duration_ns(hand_over.submit_ns.median + decision_ns.median);
}

void conclude(const Measurements& measured, const ProbeDesign& probe, Calibration& out, Notes& notes) {
  HardwareProfile& profile = out.profile;
  profile.uncertainty = find_uncertainty(measured, profile);
  profile.fingerprint = fingerprint_here(probe.site.device.get());
  out.conditions.last = probe_and_say(probe, notes);
  add_drift(out.conditions.first, out.conditions.last, profile.uncertainty);
  out.conditions.end = cpu_times_now();
  profile.fingerprint->probe = joined(out.conditions.first, out.conditions.last);
  out.residuals = residuals(measured.all_ops(), profile);
  notes.remark_on_noise();
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

std::string residual_csv(const std::vector<Residual>& residuals) {
  std::string csv =
      "body,network,sizes,engine,held_out,measured_ns,predicted_ns,gemm_ns,attention_ns,memory_ns,optimizer_ns\n";
  for (const Residual& r : residuals) {
    csv += csv_cell(r.body) + ',' + csv_cell(r.network) + ',' + r.sizes + ',' +
           csv_cell(std::string(name_of(r.engine))) + ',' + (r.held_out ? "1" : "0") +
           printed(",%.0f,%.0f", r.measured_ns, r.predicted_ns);
    for (const KernelKind kind : {KernelKind::Gemm, KernelKind::Attention, KernelKind::Memory, KernelKind::Optimizer}) {
      const auto found = r.kernels_ns.find(kind);
      csv += printed(",%.0f", found == r.kernels_ns.end() ? 0.0 : found->second);
    }
    csv += '\n';
  }
  return csv;
}

}  // namespace tandem
