// Attention of one token of each text to rows of keys and values where they lie, on the CPU: each is read once, by as
// many threads as LibTorch has. Must not know calls.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "core/base/dtype.hpp"
#include "core/model/paged_attention_shape.hpp"

namespace tandem {

// `queries` and `out`: [batch, heads size], of the type. `pieces`: rows [count, 2, batch, at least key_heads size] of
// the same type, one after another. `padding`: how many of its first keys each text does not see, [batch] int64;
// undefined: none. Takes LibTorch's memory for scores and sums alone.
void attend_rows(const PagedAttentionSizes& sizes, double scale, const at::Tensor& queries, DType type,
                 const std::vector<at::Tensor>& pieces, const at::Tensor& padding, const at::Tensor& out);

}  // namespace tandem
