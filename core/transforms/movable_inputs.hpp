// What makes numbers of decoded items runs on the device, unless the policy has workers do it, op by op.
#pragma once

#include <memory>

#include "core/graph/rewrite.hpp"

namespace tandem {

std::shared_ptr<const Rewrite> movable_inputs();

}  // namespace tandem
