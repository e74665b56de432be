// Steps that generate text with a network: the prompts in one step, then a token of each text a step. Must not know
// families or policies.
#pragma once

#include <functional>
#include <memory>

#include "core/graph/graph.hpp"
#include "core/graph/rewrite.hpp"
#include "core/model/network.hpp"
#include "core/scenario/scenario.hpp"

namespace tandem {

// The network that is trained, of sequences of so many tokens.
using NetworkOfTokens = std::function<Network(std::int64_t)>;

// Throws ConfigError for what does not go with generating.
std::unique_ptr<StepSource> make_generation(const Scenario& scenario, const Rewrites& rewrites, NetworkOfTokens network,
                                            Rank rank);

}  // namespace tandem
