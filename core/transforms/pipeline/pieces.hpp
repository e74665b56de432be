// Where a network is cut for a pipeline. Must not know ranks or schedules.
#pragma once

#include <cstdint>
#include <vector>

#include "core/machine/profile.hpp"
#include "core/step/plan.hpp"

namespace tandem {

// What a device takes for passes: its machine says it. `recomputes`: all that can is computed once more before its
// backward.
struct PassTimes {
  const HardwareProfile& machine;
  bool recomputes = false;
};

// A module's stages in the plan, and what it takes, forward and backward, in ns. What is held for one is not among
// them.
struct PlanModule {
  std::vector<std::size_t> stages;
  std::int64_t ns = 0;
};
std::vector<PlanModule> modules_of(const TrainingPlan& plan, const PassTimes& times);
// What is held for a stage is in its piece.
void place_held(const TrainingPlan& plan, std::vector<std::int32_t>& piece_of);

// What is made as even as can be.
enum class CutBy : std::uint8_t {
  Time,   // of a piece, forward and backward
  Layers  // their number, whatever the first and the last piece have beside them, as Megatron-LM cuts: modules of which
          // the network has several
};

// The piece of each stage of the plan: stages in a row, such that the largest piece is as small as can be. Weights that
// are held for a stage are in its piece. Throws ConfigError where there are fewer stages than pieces.
std::vector<std::int32_t> pieces_of(const TrainingPlan& plan, std::int32_t pieces, const PassTimes& times,
                                    CutBy by = CutBy::Time);
// The same, with so many modules in each piece. Throws ConfigError where that is not all of them.
std::vector<std::int32_t> pieces_of(const TrainingPlan& plan, const std::vector<std::int64_t>& modules_of_each,
                                    const PassTimes& times);

}  // namespace tandem
