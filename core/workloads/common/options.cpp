#include "core/workloads/common/options.hpp"

#include <cmath>
#include <string>

#include "core/base/errors.hpp"

namespace tandem {

void require_option(bool holds, std::string_view key, const std::string& problem, std::string_view allowed) {
  if (holds) return;
  throw ConfigError("workload." + std::string(key) + ": " + problem + "; " + std::string(allowed));
}

void require_size(std::string_view key, std::int64_t value, std::int64_t most) {
  const std::string range = "allowed: 1 to " + std::to_string(most);
  require_option(value != 0, key, "missing", range);
  require_option(value >= 1 && value <= most, key, std::to_string(value) + " is out of range", range);
}

void require_product(std::string_view keys, std::initializer_list<std::int64_t> factors) {
  // 2^48 elements are a quarter of a petabyte in one tensor; times hidden sizes and layers this still fits in 63 bits.
  constexpr double kMostElements = 281474976710656.0;
  double product = 1;
  for (std::int64_t factor : factors) product *= static_cast<double>(factor);
  require_option(product <= kMostElements, keys, "one tensor would have more than 2^48 elements", "use smaller sizes");
}

void require_training_options(const Scenario& scenario) {
  const WorkloadOptions& w = scenario.workload;
  require_size("batch", w.batch, kMostSize);
  require_size("micro_batches", w.micro_batches, 1 << 16);
  require_size("devices", w.devices, 1 << 16);
  const bool optimal = w.recompute == "optimal";
  require_option(optimal || w.recompute == "none" || w.recompute == "block", "recompute",
                 "\"" + w.recompute + "\" is not known", "allowed: none, block, optimal");
  require_size("checkpoint_every", w.checkpoint_every, kMostLayers);
  require_option(!optimal || w.checkpoint_every == 1, "checkpoint_every", "recompute: optimal chooses the segments",
                 "allowed: 1");
  require_option(optimal || w.activation_bytes == 0, "activation_bytes", "is for recompute: optimal alone",
                 "leave it out");
  const OptimizerOptions& o = scenario.optimizer;
  if (o.name != "adam" && o.name != "adamw")
    throw ConfigError("optimizer.name: \"" + o.name + "\" is not known; allowed: adam, adamw");
  if (o.state_bits != 32 && o.state_bits != 8 && o.state_bits != 4)
    throw ConfigError("optimizer.state_bits: " + std::to_string(o.state_bits) + " is not known; allowed: 32, 8, 4");
  if (!(o.clip_norm >= 0) || std::isinf(o.clip_norm))
    throw ConfigError("optimizer.clip_norm: must not be negative; allowed: 0 (no clipping) or a positive number");
}

void require_no_validation(const Scenario& scenario) {
  if (scenario.validation.every != 0)
    throw ConfigError("validation.every: " + scenario.workload.family +
                      " has no loss; allowed: 0, or a family that is trained on data");
}

std::int64_t body_threads(const Scenario& scenario) {
  const std::int64_t machine = scenario.machine.cores > 0 ? scenario.machine.cores : 1;
  return scenario.limits.cores > 0 && scenario.limits.cores < machine ? scenario.limits.cores : machine;
}

}  // namespace tandem
