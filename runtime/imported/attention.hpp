// Attention of an imported program: one operator, whose kernel follows from the processor. Must not know passes.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "core/model/imported/program.hpp"

namespace tandem {

// The output, and a number for each query that backward reads.
std::vector<at::Tensor> imported_attention(const ImportedCall& call, const std::vector<at::Tensor>& values);
// The gradients of queries, keys and values.
std::vector<at::Tensor> imported_attention_backward(const ImportedCall& call, const std::vector<at::Tensor>& values);

}  // namespace tandem
