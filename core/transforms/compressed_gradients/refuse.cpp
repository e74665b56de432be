#include "core/transforms/compressed_gradients/refuse.hpp"

#include <string>
#include <string_view>

#include "core/base/errors.hpp"
#include "core/scenario/ranks.hpp"

namespace tandem {
namespace {

void require(bool holds, const std::string& problem, std::string_view allowed) {
  if (!holds) throw ConfigError(problem + "; allowed: " + std::string(allowed));
}

void require_alone(const Scenario& scenario) {
  const WorkloadOptions& w = scenario.workload;
  const auto refuse = [](bool refused, const std::string& problem, const std::string& allowed) {
    require(!refused, "parallel.compress: " + problem, "none, or " + allowed);
  };
  refuse(w.partition != "none", "states that ranks divide take gradients in parts, as they are", "partition: none");
  refuse(w.tensor > 1 || sequence_ranks(scenario) > 1 || expert_ranks(scenario) > 1,
         "beside ranks that divide layers, samples or experts it is not built", "parallel.data and pipeline alone");
  refuse(server_count(scenario) > 0, "servers take gradients as they are", "parallel.servers: 0");
  refuse(w.parallel.integer_or("bucket", 0) > 0, "each layer's gradient is compressed by itself", "no parallel.bucket");
  refuse(scenario.policy.name != "resident", "policy " + scenario.policy.name + " would move what is kept of gradients",
         "policy: resident");
  refuse(w.precision == DType::F16, "what is kept of a gradient does not follow the loss's scale in fp16",
         "workload.precision: fp32 or bf16");
  refuse(!scenario.checkpoint.directory.empty() || scenario.first_step > 0,
         "a checkpoint does not hold what each rank keeps of gradients", "no checkpoint.directory and no --resume");
  refuse(!scenario.switches.empty(), "no policy takes over while gradients are compressed", "no switches");
}

void require_plain_adam(const Scenario& scenario) {
  const OptimizerOptions& o = scenario.optimizer;
  require(o.name == "adamw" || (o.name == "adam" && o.weight_decay == 0),
          "parallel.compress: one_bit sends the momentum of Adam, without decay in gradients",
          "another, or optimizer.name: adamw, or adam with weight_decay: 0");
  require(o.state_bits == 32, "optimizer.state_bits: parallel.compress: one_bit takes moments in fp32", "32");
  require(o.masters || scenario.workload.precision == DType::F32,
          "optimizer.masters: parallel.compress: one_bit updates fp32 masters", "true");
  require(o.clip_norm == 0, "optimizer.clip_norm: with parallel.compress: one_bit no rank has the mean of gradients",
          "0");
}

}  // namespace

void require_compressible(const Scenario& scenario, const SentGradients& sent) {
  if (!sent.compresses()) return;
  require_alone(scenario);
  if (sent.code.kind != SentCode::Kind::Signs) return;
  require(sent.code.block % kSignsPerWord == 0,
          "parallel.compress_block: " + std::to_string(sent.code.block) + " signs are no whole words",
          "a multiple of 32");
  require_plain_adam(scenario);
}

}  // namespace tandem
