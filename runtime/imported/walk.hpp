// The walk over the calls of an imported pass, as run_pass.hpp's over those of a derived one. Must not know operators.
#pragma once

#include "runtime/primitives/common/run_pass.hpp"

namespace tandem {

std::int64_t walk_imported(const PassRun& run);

}  // namespace tandem
