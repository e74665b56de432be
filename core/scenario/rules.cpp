// Rules between keys.
#include <algorithm>

#include "core/scenario/build.hpp"

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

}  // namespace tandem
