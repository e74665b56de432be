#include "core/workloads/common/options.hpp"

#include <cmath>
#include <string>

#include "core/base/errors.hpp"
#include "core/optimizers/optimizer.hpp"

namespace tandem {

void require_training_options(const Scenario& scenario) {
  const WorkloadOptions& w = scenario.workload;
  require_size("batch", w.batch, kMostSize);
  require_size("micro_batches", w.micro_batches, 1 << 16);
  require_size("devices", w.devices, 1 << 16);
  const bool optimal = w.recompute == "optimal";
  require_option(optimal || w.recompute == "none" || w.recompute == "block" || w.recompute == "except_last",
                 "recompute", "\"" + w.recompute + "\" is not known", "allowed: none, block, except_last, optimal");
  require_size("checkpoint_every", w.checkpoint_every, kMostLayers);
  require_option(!optimal || w.checkpoint_every == 1, "checkpoint_every", "recompute: optimal chooses the segments",
                 "allowed: 1");
  require_option(optimal || w.activation_bytes == 0, "activation_bytes", "is for recompute: optimal alone",
                 "leave it out");
  const OptimizerOptions& o = scenario.optimizer;
  optimizer_of(scenario);
  if (!(o.clip_norm >= 0) || std::isinf(o.clip_norm))
    throw ConfigError("optimizer.clip_norm: must not be negative; allowed: 0 (no clipping) or a positive number");
}

void require_no_validation(const Scenario& scenario) {
  if (scenario.validation.every != 0)
    throw ConfigError("validation.every: " + scenario.workload.family +
                      " has no loss; allowed: 0, or a family that is trained on data");
}

}  // namespace tandem
