// What an update of whole fields takes beside its operands: runtime/bodies/adafactor.cpp's temporaries, in its order.
// Must not know the rest of a plan.
#pragma once

#include <cstdint>

#include "core/graph/graph.hpp"

namespace tandem {

// `copies_parameter`: it is updated in fp32 without a master. `scales`: gradients are clipped.
std::int64_t field_update_workspace(const Layout& layout, DType precision, bool copies_parameter, bool scales,
                                    bool gpu);

}  // namespace tandem
