// A module's program divided among ranks by columns, as Megatron-LM divides a transformer (Shoeybi et al., 2019): heads
// of attention and columns of the feed-forward, rows of an embedding, columns of logits. Must not know networks or
// steps.
#pragma once

#include <cstdint>
#include <vector>

#include "core/transforms/common/module_pieces.hpp"

namespace tandem {

// What cannot be divided is computed by every rank. With `by_tokens` each rank computes it of some of the tokens
// (Korthikanti et al., 2022, arXiv 2205.05198), rows in a row, and all outputs but losses are rows: a sum over ranks
// becomes one of which each gets its rows, and all rows are brought together before they are multiplied by columns.
// Throws ConfigError for what can be divided neither way.
SplitModule split_module(const Module& module, std::int64_t ranks, const std::vector<PortPart>& ports, bool by_tokens);

}  // namespace tandem
