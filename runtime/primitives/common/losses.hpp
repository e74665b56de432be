// What bodies of losses share, and of others that save what an evaluation does not keep. Must not know any loss.
#pragma once

#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {

// The gradient that backward starts from: of the loss over the micro-batches, times the scale. A scalar in fp32.
at::Tensor loss_gradient(const Arguments& a);
// What the call saves at this place, or where nothing is kept, a temporary of its shape.
at::Tensor saved_or_apart(const Arguments& a, std::size_t place);

}  // namespace tandem
