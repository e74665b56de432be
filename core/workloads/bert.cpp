// BERT style encoder: learned positions, norms after attention and feed-forward, gelu (erf), fused bidirectional
// attention, and the mean cross entropy of masked tokens through BERT's output head. One segment, so no segment
// embedding.
#include "core/workloads/common/bert_plan.hpp"
#include "core/workloads/common/options.hpp"
#include "core/workloads/common/training_source.hpp"
#include "core/workloads/workload.hpp"

namespace tandem {
namespace {

std::unique_ptr<StepSource> make_bert(const Scenario& scenario, const GraphRequest& request) {
  require_training_options(scenario);
  require_option(scenario.workload.linear_tiles == 1, "linear_tiles", "is for gpt alone", "allowed: 1");
  return std::make_unique<TrainingSource>(bert_plan(scenario), scenario, request);
}

}  // namespace
}  // namespace tandem

TANDEM_WORKLOAD(bert, make_bert, "Encoder-only transformer, trained on masked tokens")
