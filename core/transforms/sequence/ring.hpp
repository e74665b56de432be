// A module whose ranks have some tokens of each sample and keep their queries, while keys and values go round a ring
// (ring attention: Liu, Zaharia, Abbeel, 2023, arXiv 2310.01889). Must not know networks or steps.
#pragma once

#include <cstdint>
#include <vector>

#include "core/transforms/common/module_pieces.hpp"

namespace tandem {

// Of N ranks each has an Nth of each sample's tokens, as of ulysses(). Attention is N rounds, each over one rank's keys
// and values, merged by running maximum and sum; in all rounds but the last the keys and values in hand are sent to the
// next rank (Exchange::Shift) at the same time. Heads need not divide.
//
// Under a causal mask, which of its products a round leaves out follows from which tokens a rank has. By default every
// Nth: each pair of ranks then has a mask of its own along the diagonal, and all have as much to do (striped attention:
// Brandon et al., 2023, arXiv 2311.09431). `contiguous`: a part in a row. The last rank then sees all tokens of every
// other; each round takes as long as its, whatever other ranks leave out, and the network is that of this rank.
//
// Throws ConfigError for what cannot be divided so.
SplitModule ring(const Module& module, std::int64_t ranks, const std::vector<PortPart>& ports, bool contiguous);

}  // namespace tandem
