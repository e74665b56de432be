// What the calibrations of a CPU and of a GPU have in common: groups of measurements, told to people as they are made.
// Must not know which of the two they serve.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "calibration/calibrate.hpp"
#include "calibration/design.hpp"
#include "calibration/disk_times.hpp"
#include "calibration/lane_times.hpp"
#include "calibration/op_times.hpp"
#include "calibration/probe.hpp"
#include "calibration/uncertainty.hpp"

namespace tandem {

class Notes {
 public:
  Notes(bool quiet, std::vector<std::string>& remarks) : quiet_(quiet), remarks_(remarks) {}
  // A line on stderr, unless quiet.
  void say(const std::string& line) const;
  // What a reader of the profile should know.
  void remark(const std::string& line) { remarks_.push_back(line); }
  // Prints a figure in units of `unit`, and remembers it where it is noisy.
  void figure(const std::string& what, const Summary& summary, double unit, const char* unit_name);
  // A remark on all that were noisy; none where none was.
  void remark_on_noise();

 private:
  struct Noisy {
    std::string what;
    double spread = 0;
  };
  int figures_ = 0;
  std::vector<Noisy> noisy_;
  bool quiet_;
  std::vector<std::string>& remarks_;
};

struct KernelTimes {
  std::vector<KernelTime> gemms, attentions, memory, cold;
};
// Remarks on what is found, in words; see power_times.hpp.
void measure_power(const KernelSite& site, const PowerDesign& design, HardwareProfile& profile, Notes& notes);
// Of the site's precision, beside those of the one that measure_power was of.
void measure_product_draw(const KernelSite& site, const PowerDesign& design, HardwareProfile& profile,
                          const Notes& notes);
KernelTimes measure_kernels(const KernelSite& site, const KernelDesign& design, int repeats, Notes& notes);

inline constexpr int kUpdatePasses = 3;  // of each trial of other updates: a fit of projectors takes most of them
struct OpDesign {
  std::vector<Trial> trials;
  int passes = 0;
  double budget_ns = 0;
  BenchDevice device;
  decltype(&time_ops) time = &time_ops;  // or time_update
};
// `progress` is told the share of the trials that is done; it may be empty. A network that this machine cannot run is a
// remark; throws DeviceError if it can run none.
std::vector<OpTime> measure_ops(const OpDesign& design, const std::function<void(double)>& progress, Notes& notes);

void report_lanes(const CopyTimes& copies, const HandOver& hand_over, const std::vector<SlowDown>& slow_downs,
                  Notes& notes);

// The machine's probe; calibration takes it first and last.
Probe probe_and_say(const ProbeDesign& design, Notes& notes);

// The disk tier's capacity and rates, and what they were fitted to.
DiskTimes measure_disk(const CalibrationOptions& options, HardwareProfile& profile, Notes& notes);

// Hand-over and decision times of the host.
void fit_hand_over(const HandOver& hand_over, bool quick, HardwareProfile& profile, Notes& notes);

// How far the fitted profile can be trusted: uncertainty, residuals, and with the last probe the machine's fingerprint.
void conclude(const Measurements& measured, const ProbeDesign& probe, Calibration& out, Notes& notes);

}  // namespace tandem
