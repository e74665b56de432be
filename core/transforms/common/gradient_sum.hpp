// Of stages whose gradients other ranks add up than those of all others: an all-reduce of its own, once the last
// micro-batch's is in.
//
//   all_reduce_sum      reads  the rank's summand of a gradient; writes the sum, in its place
//   all_reduce          reads  the rank's gradient; writes the mean, in its place
//
// Must not know why gradients are divided so.
#pragma once

#include <memory>
#include <string_view>

#include "core/graph/rewrite.hpp"
#include "core/step/plan.hpp"

namespace tandem {

// `name`: of the file in core/transforms. Among the ranks that `of` says: of Tensor, those that divide layers; of
// Expert, those that have the same experts.
std::shared_ptr<const Rewrite> gradient_sum(std::string_view name, GradientRanks of);

}  // namespace tandem
