// What stages have between steps: the tensors of their parameters, states and gradients, and the ops that load the
// first values. Must not know how they are updated.
#pragma once

#include <span>
#include <string>

#include "core/step/context.hpp"

namespace tandem {

class BucketsPart {
 public:
  explicit BucketsPart(StepContext& context) : context_(context) {}
  // The parameter, and what is carried from step to step; of a stage that is trained its states and gradient, too.
  void add(Graph& graph, std::size_t index);
  // The initial values.
  void load(Graph& graph, std::size_t index);
  // Writes the parameter, which is in use from then on, then the states.
  Op load_op(Graph& graph, std::size_t index, const std::string& body, std::span<const TensorId> states);

 private:
  StepContext& context_;
};

}  // namespace tandem
