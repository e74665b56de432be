// Updates that may end under the next step's forward and backward, which read the parameters from before them.
#pragma once

#include "core/graph/rewrite.hpp"

namespace tandem {

std::shared_ptr<const Rewrite> delayed_update();

}  // namespace tandem
