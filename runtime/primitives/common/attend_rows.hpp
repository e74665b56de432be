// Attention of one token of each text to rows of keys and values where they lie, on the CPU: each is read once, by as
// many threads as LibTorch has. Must not know calls.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "core/base/dtype.hpp"
#include "core/model/paged_attention_shape.hpp"

namespace tandem {

// `queries`: [batch, heads size]. `pieces`: rows [count, 2, batch, at least key_heads size] of the token's type, one
// after another. Returns [batch, heads size] in fp32.
at::Tensor attend_rows(const PagedAttentionSizes& sizes, double scale, const at::Tensor& queries, DType type,
                       const std::vector<at::Tensor>& pieces);

}  // namespace tandem
