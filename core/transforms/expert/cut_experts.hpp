// A module's mixtures of experts divided among ranks (GShard: Lepikhin et al., 2020, arXiv 2006.16668; Switch: Fedus et
// al., 2022): each rank routes its own tokens, sends them to the ranks that have their experts, and gets back what
// these made. Must not know networks or steps.
#pragma once

#include <cstdint>

#include "core/transforms/common/module_pieces.hpp"

namespace tandem {

// `imbalance`: how many tokens more than the mean the busiest rank gets, which all wait for: buffers and products there
// are so many times as large. Throws ConfigError for experts that ranks do not divide.
SplitModule cut_experts(const Module& module, std::int64_t ranks, double imbalance);

}  // namespace tandem
