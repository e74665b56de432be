// Modules of GPT-2's decoder: learned positions, norms before attention and feed-forward, gelu (tanh), causal
// attention, mean next-token cross entropy. Buckets: embedding (tokens and positions), one a block, head (norm, and the
// output weight unless it is the token embedding).
#pragma once

#include <string>

#include "core/model/network.hpp"
#include "core/workloads/common/transformer.hpp"

namespace tandem {

Signal gpt_embedding(NetworkBuilder& n, const TransformerSizes& s, const Signal& tokens);
Signal gpt_block(NetworkBuilder& n, const TransformerSizes& s, const std::string& name, const Signal& x);
// The block in 2 `tiles` modules, each with a bucket of its own: of attention some heads, of the feed-forward some
// columns. The first of a half norms what all of them read; each adds to the sum.
Signal gpt_tiled_block(NetworkBuilder& n, const TransformerSizes& s, std::int64_t tiles, const std::string& name,
                       const Signal& x);
void gpt_head(NetworkBuilder& n, const TransformerSizes& s, const Signal& x, const Signal& targets);

}  // namespace tandem
