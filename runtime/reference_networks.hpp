// The networks of the reference trainer, in plain functional LibTorch. Must not know Tandem's graph or bodies.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "core/scenario/scenario.hpp"
#include "runtime/data.hpp"

namespace tandem {

struct ReferenceParameter {
  std::string name;
  std::vector<std::int64_t> shape;
  at::Tensor tensor;  // a leaf that requires a gradient
};
using ReferenceBucket = std::vector<ReferenceParameter>;

class ReferenceNetwork {
 public:
  virtual ~ReferenceNetwork() = default;
  // In forward order, as the gradient norm sums them; shapes only, tensors are filled in by the trainer.
  virtual std::vector<ReferenceBucket> buckets() const = 0;
  // The mean loss of one micro-batch.
  virtual at::Tensor loss(const std::vector<ReferenceBucket>& parameters, const DataSource& data,
                          BatchKey key) const = 0;
};

// The likeliest next token after `tokens` [length], of a gpt with these parameters.
std::int64_t reference_next_token(const WorkloadOptions& options, const std::vector<ReferenceBucket>& parameters,
                                  const at::Tensor& tokens);

// Gives parameters their initial values.
void fill_parameters(std::vector<ReferenceBucket>& buckets, std::uint64_t seed);

// Throws ConfigError for a family that neither trains nor decodes.
std::unique_ptr<ReferenceNetwork> reference_network(const Scenario& scenario);

}  // namespace tandem
