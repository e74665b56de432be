// Which parameters weight decay applies to, and how a part of a bucket is cut accordingly. Must not know LibTorch or
// ops.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/graph.hpp"
#include "core/scenario/scenario.hpp"

namespace tandem {

// One-dimensional fields are biases and the weights of norms.
bool decays(const OptimizerOptions& options, const Field& field);

// Elements of a part, counted from its first, that are all updated the same way.
struct DecayGroup {
  std::int64_t first = 0, elements = 0;
  bool decays = true;
};
// Elements [first, first + elements) of a bucket in order, cut where fields that decay meet fields that do not; padding
// goes with the field before it. One group where all fields are treated alike.
std::vector<DecayGroup> decay_groups(const OptimizerOptions& options, const Layout& layout, std::int64_t first,
                                     std::int64_t elements);

}  // namespace tandem
