// What parallel.compress does not go with so far, which is better said by name than found in the middle of a run. Must
// not know ops.
#pragma once

#include "core/transforms/common/sent_gradients.hpp"

namespace tandem {

// Throws ConfigError.
void require_compressible(const Scenario& scenario, const SentGradients& sent);

}  // namespace tandem
