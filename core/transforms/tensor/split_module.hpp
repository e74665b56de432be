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
// With `by_texts` pages of keys and values that all heads share are divided by texts, not by heads: each rank attends
// with all heads of some texts, and all-to-alls stand around (Pope et al., 2022, arXiv 2211.05102, section 3.3).
// Throws ConfigError for what can be divided neither way.
struct TensorDivision {
  std::int64_t ranks = 1;
  bool by_tokens = false, by_texts = false;
};
SplitModule split_module(const Module& module, const TensorDivision& how, const std::vector<PortPart>& ports);

}  // namespace tandem
