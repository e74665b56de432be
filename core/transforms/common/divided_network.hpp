// The network of one of the ranks that divide layers: each module in its pieces (module_pieces.hpp), which read what
// the pieces of others have made. Must not know how modules are cut.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "core/transforms/common/module_pieces.hpp"

namespace tandem {

struct NetworkDivision {
  std::string_view key;          // of the scenario, which asks for it: "parallel.tensor"
  bool tokens_between = false;   // what modules make for each other is some of the tokens
  bool tokens_of_batch = false;  // the batch's tensors are
  bool carries = false;          // modules may go on from what the step before left
  std::function<SplitModule(const Module&, const std::vector<PortPart>&)> split;
};

// As many modules as before: there was nothing to divide. Throws ConfigError for modules that are given as a whole.
Network divided_network(const Network& whole, const NetworkDivision& division);

}  // namespace tandem
