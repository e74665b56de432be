// The second of two ways in which ranks divide a layer (2D weight-stationary: Pope et al., 2022, arXiv 2211.05102,
// section 3.2.2): by its hidden width, beside columns and heads (split_module.hpp). Must not know networks or steps.
#pragma once

#include <cstdint>
#include <vector>

#include "core/transforms/common/module_pieces.hpp"

namespace tandem {

// Between layers each rank has some columns of the hidden width, and layers multiply by turns: what reads these columns
// has as many of the weight's inputs, and makes a summand of what all ranks have next; what reads all has as many of
// its outputs. Norms are of what ranks tell each other of their columns. `apart`: how far apart the ranks stand. Throws
// ConfigError, which names parallel.hidden, for calls that need all columns, and for widths that `ranks` do not divide.
struct HiddenDivision {
  std::int64_t ranks = 1, apart = 1;
};
SplitModule split_hidden(const Module& module, const HiddenDivision& how, const std::vector<PortPart>& ports);

}  // namespace tandem
