// A network in plain functional LibTorch, under autograd: its modules one after another, by the primitives' references.
// Must not know families, Tandem's graph or bodies.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "core/model/network.hpp"
#include "core/scenario/scenario.hpp"
#include "runtime/data.hpp"
#include "runtime/primitives/common/random_key.hpp"

namespace tandem {

struct ReferenceParameter {
  std::string name;
  std::vector<std::int64_t> shape;
  Initial initial = {};
  bool trained = true;     // else it is frozen, and requires no gradient
  at::Tensor tensor = {};  // a leaf
  // Of the shape's first dimension the last, which are zero and no numbers of the network.
  std::int64_t padding_rows = 0;
  std::int64_t code_bits = 0;  // it is kept as codes of so many bits; 0: as numbers
  // The numbers of the network, which come first.
  std::int64_t elements() const {
    return padding_rows == 0 ? tensor.numel() : tensor.numel() / shape.front() * (shape.front() - padding_rows);
  }
};
using ReferenceBucket = std::vector<ReferenceParameter>;

struct ReferenceLoss {
  at::Tensor own;          // the mean over one micro-batch
  at::Tensor auxiliary;    // the sum of the losses beside it, which train too; undefined: there is none
  at::Tensor scores = {};  // what the last of its own reads first: the logits of a language's network
};

class ReferenceNetwork {
 public:
  explicit ReferenceNetwork(Network network);
  const Network& network() const { return network_; }
  // One for each module with weights, in forward order, as the gradient norm sums them; shapes only, tensors are filled
  // in by the trainer.
  std::vector<ReferenceBucket> buckets() const;
  // Of a batch in the order of Network::batch, which goes where the parameters are. `random`: of any module.
  ReferenceLoss loss(const std::vector<ReferenceBucket>& parameters, const std::vector<at::Tensor>& batch,
                     RandomKey random) const;

 private:
  Network network_;
  std::vector<std::size_t> bucket_of_;  // by module; of one without weights, that of the next one
};

// Gives parameters their initial values.
void fill_parameters(std::vector<ReferenceBucket>& buckets, const Scenario& scenario);

// Of the scenario's network. Throws ConfigError for a family without one.
ReferenceNetwork reference_network(const Scenario& scenario);
// What a micro-batch of the network's tensors holds.
std::vector<at::Tensor> reference_batch(const Network& network, const Scenario& scenario, const DataSource& data,
                                        BatchKey key);
// What random numbers of a micro-batch follow from: none are drawn in an evaluation.
RandomKey reference_random(const Scenario& scenario, BatchKey key);

}  // namespace tandem
