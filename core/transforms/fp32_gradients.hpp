// 16-bit gradients that are widened, once they are final, for the update.
#pragma once

#include "core/graph/rewrite.hpp"

namespace tandem {

std::shared_ptr<const Rewrite> fp32_gradients();

}  // namespace tandem
