#include "calibration/cpu_compute.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "calibration/fit_profile.hpp"
#include "calibration/text.hpp"
#include "core/base/errors.hpp"
#include "core/step/placement.hpp"
#include "core/workloads/workload.hpp"

namespace tandem {
namespace {

// As the fits take it: the team of threads is the device.
std::vector<OpTime> as_of_device(std::vector<OpTime> times) {
  for (OpTime& time : times) time.engine = Engine::Compute;
  return times;
}

void say_errors(const std::vector<OpTime>& times, const HardwareProfile& team, Notes& notes) {
  std::vector<double> errors;
  for (const Residual& r : residuals(times, team))
    if (r.held_out) errors.push_back(std::abs(r.error()));
  if (errors.empty()) return;
  notes.say(printed("  %zu held-out ops on the CPU: predicted within %.1f%% in the median, %.1f%% in the worst case",
                    errors.size(), 100 * quantile(errors, 0.5), 100 * *std::max_element(errors.begin(), errors.end())));
}

// Perceptrons train in fp32 alone.
bool trains_in(Scenario scenario, DType type) {
  scenario.workload.precision = type;
  try {
    find_workload(scenario.workload.family)->make(scenario, {}, 0);
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

}  // namespace

CpuComputeDesign cpu_compute_design(bool quick, std::int32_t cores, DType type) {
  CpuComputeDesign design;
  design.type = type;
  if (type != DType::F32) design.other_types = {DType::F32};
  design.kernels = designed_kernels(quick);
  design.kernel_repeats = 9;
  design.passes = quick ? 2 : 4;
  design.op_budget_ns = quick ? 0.1e9 : 1.5e9;
  design.trials = designed_trials(quick, cores);
  for (Trial& trial : design.trials) {
    if (trains_in(trial.scenario, type)) trial.scenario.workload.precision = type;
    trial.scenario.policy.options[std::string(kCpuModules)] = "*";
    trial.times_update = false;
  }
  return design;
}

std::vector<OpTime> time_cpu_modules(const Trial& trial, int least_passes, double budget_ns,
                                     const BenchDevice& device) {
  return time_ops_on(Engine::CpuCompute, trial, least_passes, budget_ns, device);
}

std::shared_ptr<const HardwareProfile> measure_cpu_compute(const CpuComputeDesign& design,
                                                           const HardwareProfile& machine, const BenchDevice& device,
                                                           Notes& notes) {
  HardwareProfile team;
  team.cores = machine.cores;
  team.tiers[static_cast<std::size_t>(Tier::Device)] = machine.tiers[static_cast<std::size_t>(Tier::HostPinned)];
  KernelSite site{nullptr, false, design.type, Workbench::cpu_threads(machine.cores)};
  const KernelTimes kernels = measure_kernels(site, design.kernels, design.kernel_repeats, notes);
  fit_kernels(kernels.gemms, kernels.attentions, kernels.memory, design.type, team);
  fit_overlap(kernels.cold, design.type, team);
  for (const DType type : design.other_types) {
    site.type = type;
    fit_peak(time_gemms(site, {design.kernels.gemms.back()}, design.kernel_repeats), type, team);
  }
  const std::vector<OpTime> times = as_of_device(
      measure_ops({design.trials, design.passes, design.op_budget_ns, device, &time_cpu_modules}, {}, notes));
  fit_bodies(times, team);
  say_errors(times, team, notes);
  return std::make_shared<const HardwareProfile>(std::move(team));
}

}  // namespace tandem
