// Token and position embeddings (fields wte [vocabulary, hidden] and wpe [sequence, hidden]). Must not know ops.
#pragma once

#include <ATen/core/Tensor.h>

#include "runtime/bodies/common/operands.hpp"

namespace tandem {

// out [batch, sequence, hidden] = wte[tokens] + wpe.
void embed_out(const at::Tensor& out, const at::Tensor& tokens, const Bucket& parameters);

// out [tokens, hidden] = wte[tokens] + wpe from row `position` on.
void embed_at(const at::Tensor& out, const at::Tensor& tokens, const Bucket& parameters, std::int64_t position);

// Adds up the gradients of wte and wpe. `tied` [vocabulary, hidden]: what a tied output layer contributed to wte, or
// undefined.
void embed_backward(const Gradients& gradients, const at::Tensor& grad, const at::Tensor& tokens,
                    std::int64_t vocabulary, const at::Tensor& tied);

}  // namespace tandem
