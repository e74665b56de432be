// Rules between keys.
#include <algorithm>
#include <set>

#include "core/machine/topology.hpp"
#include "core/scenario/build.hpp"
#include "core/scenario/ranks.hpp"
#include "core/scenario/text_lengths.hpp"

namespace tandem {
namespace {

// One training step on one device must count in 64-bit integers (flops, bytes, ns) with room for sums.
constexpr double kMostStepWork = 4e18;

// What a rule reads, and where it adds what breaks it.
class Rules {
 public:
  Rules(const Values& values, Findings& findings) : values_(&values), findings_(&findings) {}
  const Values& values() const { return *values_; }

  // Whether all values that a rule goes by are known. An error in one of them says enough.
  bool can_judge(const std::vector<std::string>& paths) const { return findings_->are_known(paths); }
  bool is_open(const std::string& path) const { return findings_->is_open(path); }

  // Of the values that a rule goes by, the one that stands nearest to the person is at fault, the first of equally near
  // ones: a flag contradicts the file, not the file the flag.
  const std::string& at_fault(const std::vector<std::string>& paths) const {
    const auto distance = [&](const std::string& path) {
      const Position* at = values_->position(path);
      return at != nullptr ? at->distance : kDefaultDistance;
    };
    return *std::min_element(paths.begin(), paths.end(),
                             [&](const std::string& a, const std::string& b) { return distance(a) < distance(b); });
  }

  // Values in other files are told with their places.
  void require(bool holds, const std::vector<std::string>& paths, const std::string& problem,
               const std::string& allowed) {
    if (holds || !can_judge(paths)) return;
    const std::string& path = at_fault(paths);
    const Position* at = values_->position(path);
    const Position place = at != nullptr ? *at : Position();
    std::string others;
    for (const std::string& other : paths)
      if (const Position* there = values_->position(other); there != nullptr && other != path)
        if (const std::string where = elsewhere(*there, place); !where.empty()) others += ", " + other + where;
    findings_->add(Finding(place, path, problem + others, allowed));
  }

 private:
  const Values* values_;
  Findings* findings_;
};

// Least work of a training step in flops or bytes, whichever is more, in doubles: the exact counts are the family's.
double step_work(const WorkloadOptions& w, const ValidationOptions& validation) {
  const auto real = [](std::int64_t n) { return static_cast<double>(std::max<std::int64_t>(n, 1)); };
  const double evaluated = validation.every > 0 ? real(validation.batches) : 0;
  const double samples = real(w.batch) * (real(w.micro_batches) + evaluated);
  const auto size = [&](const char* key) { return real(w.keys.integer_or(key, 0)); };
  const double tokens = samples * size("sequence");
  const double hidden = size("hidden"), layers = size("layers");
  const double blocks = layers * (72 * hidden * hidden + 12 * hidden * size("sequence"));  // flops a token
  const double ends = 6 * hidden * (size("vocabulary") + size("inputs") + size("classes"));
  constexpr double kActivationBytes = 64;  // of each hidden value of a block, all that backward needs
  return tokens * (blocks + ends + kActivationBytes * hidden * layers) + layers * size("layer_bytes");
}

void check_workload(Rules& rules, const Scenario& scenario) {
  std::vector<std::string> sizes{"workload.family"};
  for (const char* key :
       {"batch", "micro_batches", "sequence", "hidden", "layers", "vocabulary", "inputs", "classes", "layer_bytes"})
    sizes.push_back(std::string("workload.") + key);
  sizes.insert(sizes.end(), {"validation.every", "validation.batches"});
  const auto divided =
      static_cast<double>(scenario.workload.tensor * scenario.parallel.pipeline * sequence_ranks(scenario));
  if (rules.can_judge(sizes))
    rules.require(step_work(scenario.workload, scenario.validation) / divided <= kMostStepWork, {rules.at_fault(sizes)},
                  "one training step would take more than 4e18 operations or bytes", "smaller sizes");
}

// Devices that train one model add up their gradients, and those that divide layers what their parts come to.
void check_devices(Rules& rules, const Scenario& scenario) {
  const bool divides = scenario.workload.tensor > 1, of_samples = sequence_ranks(scenario) > 1;
  const bool adds_up = (scenario.workload.devices > 1 || of_samples) && server_count(scenario) == 0;
  if (!(adds_up || divides) || rules.is_open("machine")) return;
  const std::string key = divides                         ? "parallel.tensor"
                          : scenario.workload.devices > 1 ? "workload.devices"
                                                          : "parallel.sequence";
  rules.require(scenario.machine.collective_bytes_per_s > 0 || scenario.machine.topology,
                {key, "machine.collective.bandwidth"},
                scenario.machine.name + " has no collective.bandwidth, the rate at which devices add up " +
                    (divides ? "what their parts of layers come to" : "gradients"),
                "1, or a machine with collective.bandwidth, such as --set machine.collective.bandwidth=10GB/s");
}

// All ranks have a place in the machine's topology.
void check_places(Rules& rules, const Scenario& scenario) {
  const Topology* topology = scenario.machine.topology.get();
  if (topology == nullptr || rules.is_open("machine")) return;
  const std::int64_t devices = device_count(scenario);
  const std::int64_t hosts = (devices + topology->devices_per_host - 1) / topology->devices_per_host;
  const std::string key = !topology->dimensions.empty() ? "torus.dimensions.0"
                          : !topology->levels.empty()   ? "fat_tree.leaf.down"
                          : topology->nvlink.is_there() ? "nvlink.bandwidth"
                                                        : "pcie.bandwidth";
  rules.require(
      hosts <= topology->most_hosts(),
      {"parallel.data", "workload.devices", "parallel.tensor", "parallel.pipeline", "machine.topology." + key},
      std::to_string(devices) + " devices are " + std::to_string(hosts) + " hosts, and the machine's topology joins " +
          std::to_string(topology->most_hosts()),
      "at most " + std::to_string(topology->most_hosts() * topology->devices_per_host) + " devices");
}

// Stages of a pipeline send each other what their layers make.
void check_parallel(Rules& rules, const Values& values, const Scenario& scenario) {
  const auto given = [&](const char* path) {
    return values.has(path) && values.position(path)->distance < kDefaultDistance;
  };
  constexpr std::int64_t kMostDevices = 1 << 20, kMostRanks = 1 << 14;
  rules.require(device_count(scenario) <= kMostDevices && rank_count(scenario) <= kMostRanks,
                {"parallel.pipeline", "parallel.data", "parallel.tensor", "parallel.sequence", "workload.devices"},
                "there would be " + std::to_string(device_count(scenario)) + " devices",
                "at most 16384, or 1048576 with fold: true");
  // A log has all keys, with what they are where nobody gave them.
  const std::int64_t copies = values.integer("workload.devices", 1);
  if (given("parallel.data") && given("workload.devices") && copies != 1)
    rules.require(values.integer("parallel.data") == copies, {"parallel.data", "workload.devices"},
                  "workload.devices says otherwise", "one of them");
  rules.require(!scenario.parallel.fold || scenario.truth.noise == 0, {"parallel.fold", "truth.noise"},
                "ranks are alike only where none is late", "false, or no truth.noise");
  rules.require(scenario.workload.tensor == 1 || scenario.workload.recompute != "optimal",
                {"parallel.tensor", "workload.recompute"}, "of divided layers, which recompute is not chosen so far",
                "1, or recompute: none, block or except_last");
  if (server_count(scenario) > 0 && !rules.is_open("machine"))
    rules.require(scenario.machine.peer.bytes_per_s > 0, {"parallel.servers", "machine.copies.peer.bandwidth"},
                  scenario.machine.name + " has no copies.peer.bandwidth, the rate at which workers and servers send",
                  "0, or a machine with copies.peer, such as --set machine.copies.peer.bandwidth=10GB/s");
  if (scenario.parallel.pipeline == 1) {
    rules.require(scenario.parallel.chunks == 1, {"parallel.chunks", "parallel.pipeline"},
                  "one stage has the whole network", "1, or parallel.pipeline of 2 or more");
    return;
  }
  if (rules.is_open("machine")) return;
  rules.require(scenario.machine.peer.bytes_per_s > 0 || scenario.machine.topology,
                {"parallel.pipeline", "machine.copies.peer.bandwidth"},
                scenario.machine.name + " has no copies.peer.bandwidth, the rate at which stages send to each other",
                "1, or a machine with copies.peer, such as --set machine.copies.peer.bandwidth=10GB/s");
}

void check_stragglers(Rules& rules, const Scenario& scenario) {
  const Rank ranks = rank_count(scenario);
  std::set<Rank> seen;
  for (std::size_t i = 0; i < scenario.truth.stragglers.size(); ++i) {
    const std::string path = "truth.stragglers." + std::to_string(i) + ".rank";
    const Rank rank = scenario.truth.stragglers[i].rank;
    rules.require(!scenario.parallel.fold, {"parallel.fold", path}, "ranks are alike only where none is slow",
                  "false, or no truth.stragglers");
    if (scenario.parallel.fold) return;
    rules.require(rank < ranks, {path, "workload.devices", "parallel.data", "parallel.tensor", "parallel.pipeline"},
                  "there are " + std::to_string(ranks) + " ranks", "0 to " + std::to_string(ranks - 1));
    rules.require(seen.insert(rank).second, {path}, "is slow already", "each rank once");
  }
}

void check_optimizer(Rules& rules, const OptimizerOptions& o) {
  if (o.schedule == "constant" || o.decay_steps == 0) return;
  rules.require(o.decay_steps > o.warmup_steps,
                {"optimizer.decay_steps", "optimizer.warmup_steps", "optimizer.schedule"},
                "the learning rate would have decayed before its warm-up ends", "0, or more than warmup_steps");
}

bool is_given(const Values& values, const std::string& path) {
  return values.has(path) && values.position(path)->distance < kDefaultDistance;
}

// Steps, or epochs of so many samples.
void check_epochs(Rules& rules, const Values& values, const Scenario& scenario) {
  if (!rules.can_judge({"epochs", "data.samples"})) return;
  if (!values.has("epochs")) {
    rules.require(!values.has("data.samples"), {"data.samples"}, "counts samples of an epoch", "beside epochs");
    return;
  }
  rules.require(values.has("data.samples"), {"epochs"}, "nothing says how many samples an epoch has",
                "beside data.samples");
  if (!values.has("data.samples")) return;
  const std::int64_t step = samples_of_step(scenario.workload), of_epoch = values.integer("data.samples") / step;
  rules.require(of_epoch > 0, {"data.samples", "workload.batch", "workload.micro_batches", "workload.devices"},
                "a step takes " + std::to_string(step) + " samples", "at least as many");
  rules.require(!is_given(values, "steps") || values.integer("steps") == scenario.steps, {"steps", "epochs"},
                "epochs of data.samples are " + std::to_string(scenario.steps), "one of them");
  rules.require(of_epoch <= kMostSteps / values.integer("epochs"), {"epochs", "data.samples"},
                "an epoch has " + std::to_string(of_epoch) + " steps", "at most 1000000000 steps in all");
}

// Of the keys that say what is read, those that exclude each other.
void check_data(Rules& rules, const Values& values) {
  const auto is_given = [&](const std::string& path) { return tandem::is_given(values, path); };
  const std::string tokens = "data.tokens";
  for (const std::string other : {"data.text", "data.tokenizer", "data.images"})
    if (rules.can_judge({tokens, other}) && is_given(tokens))
      rules.require(!is_given(other), {tokens, other}, other + " is given, too", "one of them");
  const std::string graph = "data.graph";
  for (const std::string other : {"data.text", "data.tokens", "data.tokenizer", "data.images", "data.manifest"})
    if (rules.can_judge({graph, other}) && is_given(graph))
      rules.require(!is_given(other), {graph, other}, other + " is given, too", "one of them");
  if (rules.can_judge({tokens, "data.token_type"}))
    rules.require(is_given(tokens) || !is_given("data.token_type"), {"data.token_type"},
                  "is of data.tokens, which is not given", "beside data.tokens");
}

void check_switches(Rules& rules, const Scenario& scenario) {
  std::int64_t before = 0;
  for (std::size_t i = 0; i < scenario.switches.size(); ++i) {
    const std::string path = "switches." + std::to_string(i) + ".after_step";
    const std::int64_t at = scenario.switches[i].after_step;
    rules.require(at > before, {path}, "comes no later than the switch before it",
                  "more than " + std::to_string(before));
    rules.require(at < scenario.steps, {path, "steps"}, "no step comes after it",
                  "less than steps, " + std::to_string(scenario.steps));
    before = at;
  }
}

// A host of its own, or none beside the device's one memory; rates for what of it is not pinned.
void check_host(Rules& rules, const Values& values, const std::string& prefix) {
  const std::string tiers = prefix + "tiers.", pinned = tiers + "host_pinned.capacity",
                    pageable = tiers + "host_pageable.capacity", pool = tiers + "one_pool";
  if (rules.is_open(prefix + "tiers") || !rules.can_judge({pool})) return;
  if (values.flag(pool)) {
    for (const std::string& beside : {pinned, pageable})
      rules.require(!values.has(beside), {pool}, "the machine has host memory beside the device's",
                    "true without " + beside.substr(prefix.size()) + ", or false");
    return;
  }
  if (rules.can_judge({pinned, tiers + "device.capacity"}))
    rules.require(values.has(pinned), {tiers + "device.capacity"}, "the machine has no host memory beside it",
                  "tiers.host_pinned, or tiers.one_pool: true");
  if (values.integer(pageable) == 0) return;
  for (const char* lane : {"pageable_h2d", "pageable_d2h"}) {
    const std::string rate = prefix + "copies." + lane + ".bandwidth";
    if (rules.can_judge({rate}) && !rules.is_open(rate))
      rules.require(values.has(rate), {pageable}, std::string("needs copies.") + lane,
                    "pageable memory with both rates, or none");
  }
}

void check_texts(Rules& rules, const Values& values, const Scenario& scenario) {
  for (const std::string key : {"generate.prompt", "generate.new_tokens"}) {
    const WrongLengths wrong = wrong_lengths(values, key, samples_of_step(scenario.workload));
    rules.require(wrong.problem.empty(), wrong.paths, wrong.problem, wrong.allowed);
  }
}

}  // namespace

void check_profile_rules(const Values& values, const std::string& prefix, Findings& findings) {
  check_plausible(values, prefix, findings);
  check_measured_ops(values, prefix, findings);
  check_topology(values, prefix, findings);
  check_consistent(values, prefix, findings);
  Rules rules(values, findings);
  check_host(rules, values, prefix);
  if (values.integer(prefix + "tiers.disk.capacity") == 0) return;
  for (const char* lane : {"disk_read", "disk_write"}) {
    const std::string rate = prefix + "copies." + lane + ".bandwidth";
    if (rules.can_judge({rate}) && !rules.is_open(rate))
      rules.require(values.has(rate), {prefix + "tiers.disk.capacity"}, std::string("needs copies.") + lane,
                    "a disk with both rates, or none");
  }
}

void check_scenario_rules(const Values& values, const Scenario& scenario, Findings& findings) {
  check_profile_rules(values, "machine.", findings);
  Rules rules(values, findings);
  check_workload(rules, scenario);
  check_optimizer(rules, scenario.optimizer);
  check_devices(rules, scenario);
  check_parallel(rules, values, scenario);
  check_places(rules, scenario);
  check_stragglers(rules, scenario);
  check_epochs(rules, values, scenario);
  check_switches(rules, scenario);
  check_data(rules, values);
  check_texts(rules, values, scenario);
  const bool has_disk = scenario.machine.tiers[static_cast<std::size_t>(Tier::Disk)].capacity_bytes > 0;
  if (rules.can_judge({"machine.tiers.disk.capacity"}) && !rules.is_open("machine"))
    rules.require(scenario.limits.disk_bytes.value_or(0) == 0 || has_disk, {"limits.disk_bytes"},
                  "the machine has no disk", "no limit, or a machine with tiers.disk");
}

}  // namespace tandem
