// The order in which stages take passes as their messages arrive. Must not know what passes compute, nor ranks.
#pragma once

#include <vector>

#include "core/transforms/pipeline/schedule.hpp"

namespace tandem {

// AxoNN's order (Singh and Bhatele, IPDPS 2022, algorithm 2): a stage takes what arrived first. The last stage answers
// a forward with its backward at once; the first one answers a backward with the next forward, and begins with as many
// as there are stages. Which message is first would depend on the run; here it is said beforehand, as if all forwards
// took the same time, backwards twice that, and messages none, of two at one time the backward first: so a step's
// gradients add up in one order.
std::vector<StageTurn> message_driven(const PipelineShape& shape, std::int32_t stage);

}  // namespace tandem
