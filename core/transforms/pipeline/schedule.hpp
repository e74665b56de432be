// In which order a stage of a pipeline takes the passes of its micro-batches. Must not know what they compute, nor
// ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/step/plan.hpp"

namespace tandem {

// One pass of a micro-batch over one of the stage's pieces of the network.
struct StageTurn {
  bool backward = false;
  std::int32_t chunk = 0, micro_batch = 0;
  Gradients of = Gradients::All;  // that a backward makes
  bool operator==(const StageTurn&) const = default;
};

struct PipelineShape {
  std::int32_t stages = 1, chunks = 1, micro_batches = 1;
};

// Of `stage`, from 0. Backward passes of a piece come in the order of micro-batches, so that gradients add up as they
// do on one device. `schedule`:
//   naive        one micro-batch after another: all other stages wait
//   gpipe        all forwards, then all backwards (Huang et al., NeurIPS 2019)
//   1f1b         as few forwards as fill the pipeline, then one backward, one forward (PipeDream-flush: Narayanan et
//                al., ICML 2021; Megatron-LM's default)
//   zero_bubble  1f1b of backwards that make gradients of inputs; those of weights come later by as many micro-batches
//                as there are stages before this one, so that each stage holds as many as the first (ZB-H1: Qi et al.,
//                ICLR 2024)
//   hippie       gpipe, but that the last stage has one forward, one backward by turns, so that gradients are on their
//                way while forwards still come (last-stage schedule: Ye et al., ICPP 2021)
//   axonn        as messages arrive (message_driven.hpp)
//   interleaved  1f1b over several pieces a stage, micro-batches in groups of as many as there are stages (Narayanan et
//                al., SC 2021, section 2.2)
// Throws ConfigError for a shape that the schedule does not have.
std::vector<StageTurn> stage_turns(const std::string& schedule, const PipelineShape& shape, std::int32_t stage);

// The most micro-batches that are between their first forward and their last backward, such that each m is over before
// m + that many begins.
std::int32_t micro_batches_at_once(const std::vector<StageTurn>& turns, std::int32_t micro_batches);

}  // namespace tandem
