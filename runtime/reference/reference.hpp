// Plain LibTorch training of the same networks: whole-graph autograd of the primitives' references and
// at::_fused_adam_, nothing of Tandem's passes, graph, bodies or scheduler. The oracle that offloaded training must
// equal to the bit.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/scenario/scenario.hpp"
#include "runtime/data.hpp"

namespace tandem {

struct ReferenceOptions {
  bool delayed_update = false;  // step s trains with the parameters from before step s-1's update
};

struct ReferenceEvaluation {
  std::int32_t step = 0;       // that it followed
  std::vector<double> losses;  // by batch
};

struct ReferenceResult {
  std::vector<std::vector<double>> losses;  // by step, by micro-batch
  std::vector<double> gradient_norms;       // by step, where gradients are clipped
  std::vector<ReferenceEvaluation> evaluations;
  std::map<std::string, std::vector<float>> parameters;  // fp32 (masters), by full field name: "block0.qkv.weight"
  std::int32_t skipped_steps = 0;                        // gradients that were not finite
};

// Trains for Scenario::steps on one rank, with 16-bit precisions from fp32 master parameters, with the calling thread's
// number of intra-operator threads. Throws ConfigError for a family without a network.
ReferenceResult train_reference(const Scenario& scenario, const DataSource& data, const ReferenceOptions& options = {});

// The tokens that greedy decoding of a gpt_decode scenario samples, each from a whole forward pass over all before it.
std::vector<std::int64_t> decode_reference(const Scenario& scenario, const DataSource& data);

}  // namespace tandem
