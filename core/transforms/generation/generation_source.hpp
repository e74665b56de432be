// Steps that generate text with a network: the prompts in one step, then a token of each text a step. Must not know
// families or policies.
#pragma once

#include <memory>

#include "core/graph/graph.hpp"
#include "core/graph/rewrite.hpp"
#include "core/scenario/scenario.hpp"
#include "core/transforms/generation/generation_plan.hpp"

namespace tandem {

// Throws ConfigError for what does not go with generating.
std::unique_ptr<StepSource> make_generation(const Scenario& scenario, const Rewrites& rewrites, NetworkOfTokens network,
                                            Rank rank);

}  // namespace tandem
