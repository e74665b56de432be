// GPT-2 style decoder: learned positions, norms before attention and feed-forward, gelu (tanh), fused causal attention,
// mean next-token cross entropy. Parameters in buckets: embedding (tokens and positions), one a block, final (norm, and
// the output weight unless tied to the token embedding).
#include "core/workloads/common/gpt_plan.hpp"
#include "core/workloads/common/options.hpp"
#include "core/workloads/common/training_source.hpp"
#include "core/workloads/workload.hpp"

namespace tandem {
namespace {

std::unique_ptr<StepSource> make_gpt(const Scenario& scenario, const GraphRequest& request) {
  require_training_options(scenario);
  return std::make_unique<TrainingSource>(gpt_plan(scenario), scenario, request);
}

}  // namespace
}  // namespace tandem

TANDEM_WORKLOAD(gpt, make_gpt, "Decoder-only transformer, trained on the next token")
