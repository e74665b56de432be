// Rules between keys, and what is odd but allowed.
#include <algorithm>
#include <cmath>

#include "core/scenario/build.hpp"
#include "core/scenario/capacity.hpp"

namespace tandem {
namespace {

// One training step on one device must count in 64-bit integers (flops, bytes, ns) with room for sums.
constexpr double kMostStepWork = 4e18;

void require(bool holds, const Values& values, const std::string& path, const std::string& problem,
             const std::string& allowed) {
  if (holds) return;
  const Position* at = values.position(path);
  refuse(at != nullptr ? *at : Position(), path, problem, allowed);
}

// Least work of a training step in flops or bytes, whichever is more, in doubles: the exact counts are the family's.
double step_work(const WorkloadOptions& w, const ValidationOptions& validation) {
  const auto real = [](std::int64_t n) { return static_cast<double>(std::max<std::int64_t>(n, 1)); };
  const double evaluated = validation.every > 0 ? real(validation.batches) : 0;
  const double samples = real(w.batch) * (real(w.micro_batches) + evaluated);
  const double tokens = samples * real(w.sequence);
  const double hidden = real(w.hidden);
  const double blocks = real(w.layers) * (72 * hidden * hidden + 12 * hidden * real(w.sequence));  // flops a token
  const double ends = 6 * hidden * (real(w.vocabulary) + real(w.inputs) + real(w.classes));
  constexpr double kActivationBytes = 64;  // of each hidden value of a block, all that backward needs
  return tokens * (blocks + ends + kActivationBytes * hidden * real(w.layers)) + real(w.layers) * real(w.layer_bytes);
}

void check_workload(const Values& values, const Scenario& scenario) {
  const WorkloadOptions& w = scenario.workload;
  const bool wants_time = w.family == "layers";
  require(!values.has("workload.optimizer") || values.is_integer("workload.optimizer") == wants_time, values,
          "workload.optimizer", wants_time ? "is no duration" : "is a duration",
          wants_time ? "the duration of one layer's optimizer step, such as 26ms" : "adam, adamw");
  if (w.prompt > 0)
    require(w.prompt + w.new_tokens <= w.sequence, values, "workload.new_tokens",
            "prompt and new_tokens are " + std::to_string(w.prompt + w.new_tokens) + " tokens, sequence only " +
                std::to_string(w.sequence),
            "at most sequence - prompt");
  if (w.stop_token != kNone)
    require(w.stop_token < w.vocabulary, values, "workload.stop_token",
            std::to_string(w.stop_token) + " is no token of the vocabulary",
            "from 0 to " + std::to_string(w.vocabulary - 1));
  require(step_work(w, scenario.validation) <= kMostStepWork, values, "workload.family",
          "one training step would take more than 4e18 operations or bytes", "smaller sizes");
}

void check_validation(const Values& values, const Scenario& scenario) {
  if (scenario.validation.every == 0) return;
  const std::string& family = scenario.workload.family;
  require(family != "layers" && family != "gpt_decode", values, "validation.every", family + " has no loss",
          "0, or a family that is trained on data");
}

void check_optimizer(const Values& values, const OptimizerOptions& o) {
  if (o.schedule == "constant" || o.decay_steps == 0) return;
  require(o.decay_steps > o.warmup_steps, values, "optimizer.decay_steps",
          "the learning rate would have decayed before its warm-up ends", "0, or more than warmup_steps");
}

// A flag may choose another schedule than the file was written for, so these are odd and not wrong.
void warn_of_schedule(Scenario& scenario) {
  const OptimizerOptions& o = scenario.optimizer;
  if (o.schedule != "constant") return;
  const auto unused = [&](bool given, const char* key) {
    if (given) scenario.warnings.push_back(std::string("optimizer.") + key + ": has no effect with schedule: constant");
  };
  unused(o.decay_steps > 0, "decay_steps");
  unused(o.final_learning_rate > 0, "final_learning_rate");
}

}  // namespace

void check_profile_rules(const Values& values, const std::string& prefix) {
  check_plausible(values, prefix);
  const double shared = values.number(prefix + "copies.shared_bandwidth");
  for (const char* lane : {"h2d", "d2h"})
    require(shared == 0 || shared >= values.number(prefix + "copies." + lane + ".bandwidth"), values,
            prefix + "copies.shared_bandwidth", std::string("is less than ") + lane + " reaches alone",
            "at least the larger of h2d and d2h");
  if (values.integer(prefix + "tiers.disk.capacity") == 0) return;
  for (const char* lane : {"disk_read", "disk_write"})
    require(values.has(prefix + "copies." + lane + ".bandwidth"), values, prefix + "tiers.disk.capacity",
            std::string("needs copies.") + lane, "a disk with both rates, or none");
}

void check_scenario_rules(const Values& values, const Scenario& scenario) {
  check_profile_rules(values, "machine.");
  check_workload(values, scenario);
  check_optimizer(values, scenario.optimizer);
  check_validation(values, scenario);
  require(scenario.limits.disk_bytes == 0 ||
              scenario.machine.tiers[static_cast<std::size_t>(Tier::Disk)].capacity_bytes > 0,
          values, "limits.disk_bytes", "the machine has no disk", "no limit, or a machine with tiers.disk");
}

// Threads of the optimizer's lane on so many cores: others than its own keep theirs.
static double optimizer_threads(const HardwareProfile& machine, std::int32_t cores) {
  const auto wanted = machine.lane_cores.find(Engine::CpuOptimizer);
  const double all = wanted == machine.lane_cores.end() ? machine.cores : wanted->second;
  return std::max(1.0, all - (machine.cores - cores));
}

// The optimizer's rate by threads where the profile has it: memory may serve a few threads as well as many. Else the
// CPU's rates are taken to scale with its cores, unless the profile says how many cores each lane wants: then the lanes
// share what is left.
static void limit_cores(HardwareProfile& machine, std::int32_t cores) {
  if (cores <= 0 || cores >= machine.cores) return;
  const double share = static_cast<double>(cores) / machine.cores;
  if (machine.lane_cores.empty()) machine.cpu_flops *= share;
  if (const Curve& by_threads = machine.cpu_optimizer_threads; !by_threads.x.empty()) {
    const double threads = optimizer_threads(machine, cores);
    machine.cpu_optimizer_parameters_per_s *=
        by_threads.at(threads) / by_threads.at(optimizer_threads(machine, machine.cores));
    if (machine.lane_cores.contains(Engine::CpuOptimizer)) machine.lane_cores[Engine::CpuOptimizer] = threads;
  } else if (machine.lane_cores.empty()) {
    machine.cpu_optimizer_parameters_per_s *= share;
  }
  machine.cores = cores;
}

// No size is copied faster than the limit; small copies may be slower by themselves.
static void limit_copies(CopyRate& lane, double bytes_per_s) {
  if (bytes_per_s <= 0 || bytes_per_s >= lane.bytes_per_s) return;
  for (double& efficiency : lane.efficiency.y) efficiency = std::min(1.0, efficiency * lane.bytes_per_s / bytes_per_s);
  lane.bytes_per_s = bytes_per_s;
}

// Each rank has its share of the host, as each live rank is a process of its own: of its cores, of what they update,
// and of what all devices' links bring together.
static void share_host(HardwareProfile& machine, std::int64_t ranks) {
  if (ranks == 1) return;
  limit_cores(machine, static_cast<std::int32_t>(std::max<std::int64_t>(machine.cores / ranks, 1)));
  const double each_way = machine.host_copy_bytes_per_s / static_cast<double>(ranks);
  limit_copies(machine.h2d, each_way);
  limit_copies(machine.d2h, each_way);
}

void warn(Scenario& scenario) {
  HardwareProfile& machine = scenario.machine;
  const DType precision = scenario.workload.precision;
  if (!machine.peak_flops.contains(precision)) {
    machine.peak_flops[precision] = machine.peak_flops[DType::F32];
    scenario.warnings.push_back("workload.precision: " + machine.name + " has no units for " +
                                std::string(name_of(precision)) + "; it is emulated at fp32's rate");
  }
  if (precision == DType::F16 && !scenario.optimizer.loss_scaling)
    scenario.warnings.emplace_back("optimizer.loss_scaling: without it, gradients that fp16 cannot hold vanish unseen");
  if (scenario.checkpoint.every > 0 && scenario.checkpoint.directory.empty())
    scenario.warnings.push_back("checkpoint.every: no checkpoint.directory is given, so nothing is saved");
  const auto cap = [&](const char* key, std::int64_t limit, std::int64_t machine_has) {
    if (limit > machine_has)
      scenario.warnings.push_back(std::string("limits.") + key + ": " + std::to_string(limit) + " is more than the " +
                                  std::to_string(machine_has) + " of " + machine.name + "; it limits nothing");
  };
  const auto capacity = [&](Tier tier) { return machine.tiers[static_cast<std::size_t>(tier)].capacity_bytes; };
  warn_of_schedule(scenario);
  cap("device_bytes", scenario.limits.device_bytes, capacity(Tier::Device));
  cap("host_bytes", scenario.limits.host_bytes, capacity(Tier::HostPinned) + capacity(Tier::HostPageable));
  cap("disk_bytes", scenario.limits.disk_bytes, capacity(Tier::Disk));
  cap("cores", scenario.limits.cores, machine.cores);
  cap("h2d", std::llround(scenario.limits.h2d_bytes_per_s), std::llround(machine.h2d.bytes_per_s));
  cap("d2h", std::llround(scenario.limits.d2h_bytes_per_s), std::llround(machine.d2h.bytes_per_s));
  limit_cores(machine, scenario.limits.cores);
  limit_copies(machine.h2d, scenario.limits.h2d_bytes_per_s);
  limit_copies(machine.d2h, scenario.limits.d2h_bytes_per_s);
  share_host(machine, ranks_on_host(scenario));
}

}  // namespace tandem
