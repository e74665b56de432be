// Which heads LibTorch's fused attention takes. Must not know primitives.
#pragma once

#include <cstdint>

#include "core/base/dtype.hpp"

namespace tandem {

// In 16 bits a GPU's kernel wants heads of whole 16 bytes, and of at most 256 numbers. The CPU's would take others,
// too: the same network is computed the same way everywhere.
constexpr bool has_fused_heads(DType type, std::int64_t size) {
  constexpr std::int64_t kMultiple = 8, kMost = 256;
  return type == DType::F32 || type == DType::F64 || (size % kMultiple == 0 && size <= kMost);
}

}  // namespace tandem
