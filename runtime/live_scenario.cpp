#include "runtime/live_scenario.hpp"

#include <algorithm>
#include <limits>

#include "core/base/errors.hpp"
#include "core/scenario/ranks.hpp"
#include "core/transforms/generation/generation_keys.hpp"
#include "core/workloads/workload.hpp"
#include "runtime/divided_weights.hpp"
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

// Of ranks on GPUs, what has been seen on CPU processes alone.
void refuse_ranks_on_gpus(const Scenario& scenario) {
  const auto refuse = [](bool unseen, const std::string& what, const std::string& allowed) {
    if (unseen) throw ConfigError(what + " on GPUs so far; allowed: " + allowed + ", --device cpu, or tandem simulate");
  };
  const bool divides = state_parts(scenario) > 1;
  refuse(server_count(scenario) > 0, "parallel.servers: none are", "0");
  refuse(scenario.workload.parallel.text_or("sequence_kind", "") == "ring",
         "parallel.sequence_kind: ring attention is not trained", "ulysses");
  refuse(divides && scenario.parallel.pipeline > 1, "workload.partition: states are not divided in a pipeline", "none");
  refuse(divides && (!scenario.checkpoint.directory.empty() || scenario.first_step > 0),
         "checkpoint.directory: no checkpoints are made of divided states", "none, and no --resume");
}

// What it decodes is compared with plain LibTorch in fp32 on the CPU alone so far.
void refuse_decoding(const Scenario& scenario, const std::string& device) {
  if (generates(scenario) && GenerationSizes(scenario.workload).cache_bits > 0)
    throw ConfigError("generate.cache_bits: codes are simulated so far; allowed: none, or tandem simulate");
  if (scenario.workload.family != "gpt_decode") return;
  if (device == "cuda")
    throw ConfigError("--device: gpt_decode runs on the CPU so far; allowed: --device cpu, or tandem simulate");
  if (scenario.workload.precision != DType::F32)
    throw ConfigError("workload.precision: gpt_decode runs in fp32 so far; allowed: fp32, or tandem simulate");
}

// What divides modules: ranks that have parts of layers, of samples, or of experts.
std::string divides(const Scenario& scenario) {
  if (scenario.workload.tensor > 1) return "parallel.tensor";
  return sequence_ranks(scenario) > 1 ? "parallel.sequence" : "parallel.expert";
}

void refuse_divided(const Scenario& scenario, bool refused, const std::string& problem, const std::string& allowed) {
  if (refused) throw ConfigError(divides(scenario) + ": " + problem + " so far; allowed: 1, or " + allowed);
}

// A rank's part of what is not a product of its own: its draws, and gradients that a loss makes before it is known.
void refuse_divided_calls(const Scenario& scenario) {
  const bool of_samples = sequence_ranks(scenario) > 1;
  for (const NetworkModule& m : network_of(scenario).modules)
    for (const Call& call : m.module->program) {
      if (call.how.integer("ranks", 1) == 1 && !of_samples) continue;
      const std::string name = m.name + "." + call.name;
      refuse_divided(scenario, call.what->primitive.draws_random() && call.how.number("rate") > 0,
                     name + " would draw numbers for a part of what it drops", "workload.dropout: 0");
      refuse_divided(scenario, !of_samples && std::string_view(call.what->name) == "tiled_loss",
                     name + " makes gradients of a tile before all ranks know its loss", "workload.loss_tiles: 1");
    }
}

}  // namespace

void refuse_of_divided_modules(const Scenario& scenario) {
  if (!DividedWeights::are_in(scenario)) return;
  const auto refuse = [&](bool refused, const std::string& problem, const std::string& allowed) {
    refuse_divided(scenario, refused, problem, allowed);
  };
  refuse(!scenario.checkpoint.directory.empty() || scenario.first_step > 0,
         "a checkpoint holds whole states, of which each rank has a part, by other names",
         "no checkpoint.directory and no --resume");
  refuse(!scenario.switches.empty(), "no policy takes over where modules are divided", "no switches");
  refuse(scenario.workload.partition != "none", "states are not divided twice", "workload.partition: none");
  refuse(!scenario.weights.empty(), "no test has read parts of weights from files", "no weights");
  refuse(scenario.workload.lora.rank > 0, "adapters of divided modules are not trained", "workload.lora.rank: 0");
  refuse_divided_calls(scenario);
}

Scenario load_live_scenario(const LoadScenario& load, std::vector<std::string>& settings, const std::string& device) {
  Scenario scenario = load_within_memory(load, settings, device);
  if (scenario.machine.one_pool)
    throw ConfigError(
        "machine.tiers.one_pool: one memory for CPU and device is simulated alone so far; allowed: false, "
        "or tandem simulate");
  if (device == "cuda") refuse_on_gpu(scenario), refuse_ranks_on_gpus(scenario);
  if (scenario.parallel.fold)
    throw ConfigError("parallel.fold: one rank for many is simulated alone; allowed: false, or tandem simulate");
  const KeyValues& keys = scenario.workload.parallel;
  if (keys.has("expert_imbalance") && keys.number("expert_imbalance") != 1)
    throw ConfigError("parallel.expert_imbalance: is simulated alone; allowed: 1, or tandem simulate");
  refuse_of_divided_modules(scenario);
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
  const Scenario one = load_scenario(common);
  const std::int64_t stages = one.parallel.pipeline, parts = one.workload.tensor * sequence_ranks(one);
  const std::int64_t ranks = stages * parts, servers = server_count(one), workers = processes - servers;
  const std::string beside = servers > 0 ? " beside " + std::to_string(servers) + " parameter servers" : "";
  if (workers <= 0 || workers % ranks != 0)
    throw ConfigError(
        "--nproc: " + std::to_string(processes) + " processes are no whole number of copies of " +
        std::to_string(stages) + " stages (parallel.pipeline)" +
        (parts > 1 ? " of " + std::to_string(parts) + " ranks each (parallel.tensor, parallel.sequence)" : "") +
        beside + "; allowed: a multiple of " + std::to_string(ranks) + (servers > 0 ? ", and the servers" : ""));
  const std::string copies = std::to_string(workers / ranks);
  for (const char* key : {"workload.devices=", "parallel.data="}) common.overrides.push_back(key + copies);
  return load_live_scenario(common, device);
}

}  // namespace tandem
