#include "runtime/live_scenario.hpp"

#include <algorithm>
#include <limits>

#include "core/base/errors.hpp"
#include "core/scenario/ranks.hpp"
#include "runtime/host_memory.hpp"

namespace tandem {
namespace {

// Of what is free, where a device pins its arenas from the start, in whole GiB. The rest is for what else begins
// meanwhile, and for pages that others read from files: a process that takes all there is, is killed. A scenario's own
// limit is taken at its word: a virtual machine may show its memory only as it is used.
std::int64_t free_to_take() {
  constexpr std::int64_t kLeftPart = 16, kGiB = std::int64_t{1} << 30;
  const std::int64_t free = free_host_bytes(), taken = for_arenas(free - free / kLeftPart);
  return taken > kGiB ? taken / kGiB * kGiB : taken;
}

Scenario load_within_memory(const LoadScenario& load, std::vector<std::string>& settings, const std::string& device) {
  Scenario scenario = load(settings);
  const std::int64_t limit = cgroup_limit_bytes();
  const std::int64_t allowed = limit > 0 ? for_arenas(limit) : std::numeric_limits<std::int64_t>::max();
  if (scenario.limits.host_bytes > allowed)
    throw DoesNotFit("does not fit: limits.host_bytes is " + std::to_string(scenario.limits.host_bytes) +
                     ", and this process may use " + std::to_string(limit) +
                     " bytes of host memory (its control group's limit); at most " + std::to_string(allowed) +
                     " would fit");
  const std::int64_t usable = device == "cuda" ? std::min(allowed, free_to_take()) : allowed;
  const auto pinned = static_cast<std::size_t>(Tier::HostPinned);
  if (scenario.limits.host_bytes > 0 || scenario.machine.tiers[pinned].capacity_bytes <= usable) return scenario;
  settings.push_back("limits.host_bytes=" + std::to_string(usable) + "B");
  return load(settings);
}

// What the GPU half does not do yet, or cannot: better said now than by an op in the middle of a run.
void refuse_on_gpu(const Scenario& scenario) {
  if (!scenario.machine.gpu)
    throw ConfigError("--device: cuda needs a machine with compute.processor: gpu, and " + scenario.machine.name +
                      " has none; allowed: such a machine, or --device cpu");
}

// What it decodes is compared with plain LibTorch in fp32 on the CPU alone so far.
void refuse_decoding(const Scenario& scenario, const std::string& device) {
  if (scenario.workload.family != "gpt_decode") return;
  if (device == "cuda")
    throw ConfigError("--device: gpt_decode runs on the CPU so far; allowed: --device cpu, or tandem simulate");
  if (scenario.workload.precision != DType::F32)
    throw ConfigError("workload.precision: gpt_decode runs in fp32 so far; allowed: fp32, or tandem simulate");
}

}  // namespace

Scenario load_live_scenario(const LoadScenario& load, std::vector<std::string>& settings, const std::string& device) {
  Scenario scenario = load_within_memory(load, settings, device);
  if (scenario.machine.one_pool)
    throw ConfigError(
        "machine.tiers.one_pool: one memory for CPU and device is simulated alone so far; allowed: false, "
        "or tandem simulate");
  if (device == "cuda") refuse_on_gpu(scenario);
  if (scenario.workload.tensor > 1 || scenario.parallel.fold)
    throw ConfigError(
        "parallel: tensor and fold are simulated alone so far; allowed: data and pipeline, or tandem simulate");
  if (scenario.workload.parallel.text_or("sequence_kind", "") == "megatron")
    throw ConfigError(
        "parallel.sequence_kind: megatron is simulated alone so far; allowed: ulysses, or tandem simulate");
  for (const char* key : {"sequence", "expert"})
    if (scenario.workload.parallel.integer_or(key, 1) > 1)
      throw ConfigError(std::string("parallel.") + key + ": is simulated alone so far; allowed: 1, or tandem simulate");
  refuse_decoding(scenario, device);
  return scenario;
}

Scenario load_live_scenario(CommonFlags& common, const std::string& device) {
  const auto load = [&](const std::vector<std::string>& settings) {
    CommonFlags flags = common;
    flags.overrides = settings;
    return load_scenario(flags);
  };
  return load_live_scenario(load, common.overrides, device);
}

Scenario load_live_scenario(CommonFlags& common, const std::string& device, std::int64_t processes) {
  if (processes == 0) return load_live_scenario(common, device);
  const std::int64_t stages = load_scenario(common).parallel.pipeline;
  if (processes % stages != 0)
    throw ConfigError("--nproc: " + std::to_string(processes) + " processes are no whole number of pipelines of " +
                      std::to_string(stages) + " stages (parallel.pipeline); allowed: a multiple of it");
  const std::string copies = std::to_string(processes / stages);
  common.overrides.push_back("workload.devices=" + copies);
  if (stages > 1) common.overrides.push_back("parallel.data=" + copies);
  return load_live_scenario(common, device);
}

}  // namespace tandem
