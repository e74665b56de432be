// One stage's own plan, cut out of the whole network's: what crosses a cut is sent and received by stages of its own.
// Must not know schedules.
#pragma once

#include <functional>
#include <vector>

#include "core/step/plan.hpp"

namespace tandem {

struct PipelineCut {
  std::vector<std::int32_t> piece_of;      // by stage of the whole plan
  std::int32_t stages = 1, own_stage = 0;  // of the pipeline; pieces go around them
  bool branches = false;                   // pieces of one number are not all after those of a smaller one
  std::int32_t stage_of(std::int32_t piece) const { return piece % stages; }
  bool is_own(std::int32_t piece) const { return stage_of(piece) == own_stage; }
  // The ranks of a transfer from a piece to a later one, forward, or of what comes back.
  std::function<RankGroup(std::int32_t from, std::int32_t to, bool backward, bool of_bucket)> group = nullptr;
  std::function<bool(std::int32_t from, std::int32_t to)> leaves_host = nullptr;
};

struct RankPlan {
  TrainingPlan plan;
  std::vector<Turn> forwards;  // by own piece, in order: its stages in `plan`
};

// A value goes through all pieces between the one that makes it and the last that reads it. Each passes it on, and adds
// its gradient to the one that comes back: so gradients are summed in the order in which one device sums them. Between
// branches, it goes from reader to reader alone: what lies between in number is no way for it.
RankPlan rank_plan(const TrainingPlan& whole, const PipelineCut& cut);

}  // namespace tandem
