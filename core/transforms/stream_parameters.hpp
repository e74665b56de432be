// Of a policy that has parameters on the device near their use alone: so are those that ranks gather.
#pragma once

#include "core/graph/rewrite.hpp"

namespace tandem {

std::shared_ptr<const Rewrite> stream_parameters();

}  // namespace tandem
