// A gpt's block as several stages, so that a device holds a part of its parameters and gradients at a time:
// memory-centric tiling (ZeRO-Infinity, arXiv 2104.07857, section 5.1.3). Attention is cut by heads, the feed-forward
// by width: a tile's first linear map makes some of the columns, its second one adds what it makes of them to a sum.
// Must not know steps.
#pragma once

#include "core/workloads/common/plan.hpp"
#include "core/workloads/common/transformer.hpp"

namespace tandem {

// Stages of one block in forward order: `tiles` of attention, then as many of the feed-forward; at least 2 each. Their
// names follow the block's: "_attention0". Between the tiles of a half, a stage's output is [2, tokens, hidden]: what
// the half's norm gives, which all tiles read, and the sum so far, which begins with the half's input.
std::vector<StageSpec> tiled_block_stages(TrainingPlan& plan, const TransformerSizes& s, std::int64_t tiles);

}  // namespace tandem
