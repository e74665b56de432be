// A module whose ranks have some tokens of each sample, and divide attention by heads (DeepSpeed-Ulysses: Jacobs et
// al., 2023, arXiv 2309.14509). Must not know networks or steps.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/transforms/common/module_pieces.hpp"

namespace tandem {

// Of N ranks each has an Nth of each sample's tokens, in all that ports of PortPart::Tokens read: [samples, tokens] of
// a batch, [tokens, columns] of other modules. Queries, keys and values are sent to the ranks that have their heads,
// and what attention makes of them is sent back. Throws ConfigError for what cannot be divided so.
SplitModule ulysses(const Module& module, std::int64_t ranks, const std::vector<PortPart>& ports);

// Nothing is sent: each call that attends is a piece of its own, of a rank's queries to its own keys and values alone.
// `every_nth`: a rank's tokens are every Nth of a sample; else a part in a row.
SplitModule with_attention_apart(const Module& module, std::int64_t ranks, const std::vector<PortPart>& ports,
                                 bool every_nth);

// By the name of a primitive.
bool attends(std::string_view name);

}  // namespace tandem
