// Keys and values that are kept as codes: rows of numbers, whose last block is filled up with zeros. On the processor
// that the tensors are on. Must not know attention.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/base/dtype.hpp"

namespace tandem {

// fp32 [.., padded width] to codes [.., bytes]; both lie without gaps.
void encode_page(const at::Tensor& numbers, std::int64_t bits, const at::Tensor& codes);
// Back: [.., padded width], of that type.
void decode_page(const at::Tensor& codes, std::int64_t bits, DType type, const at::Tensor& numbers);

}  // namespace tandem
