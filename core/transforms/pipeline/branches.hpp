// Which branches of a network are computed by which device, at the same time. Must not know ranks or schedules.
#pragma once

#include <cstdint>
#include <vector>

#include "core/step/plan.hpp"
#include "core/transforms/pipeline/pieces.hpp"

namespace tandem {

struct BranchPieces {
  std::vector<std::int32_t> piece_of;   // by stage of the plan; what a piece reads is of pieces with smaller numbers
  std::vector<std::int32_t> until_end;  // by piece: the most pieces that a micro-batch goes through after it
};

// A branch is a row of modules that all depend on, or are needed by, the same others: an encoder of several is one,
// what joins them is another. Each branch is in one piece; the last piece has the loss. Of all ways in which two
// branches that do not depend on each other are in different pieces, the one whose longest piece is shortest; of equal
// ones, the one that takes a single micro-batch the least time. A value goes from reader to reader as one device would
// add up their gradients (rank_plan.hpp), which no way may make go round in a circle. Throws ConfigError for a network
// that has no such branches, or too few or many of them.
BranchPieces branches_of(const TrainingPlan& plan, std::int32_t pieces, const PassTimes& times);

}  // namespace tandem
