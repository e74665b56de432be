// Work of ops that divide a gradient by a number. Must not know why.
#pragma once

#include "core/model/meter.hpp"

namespace tandem {

// LibTorch's division makes a tensor of the number that it divides by, and another one of the gradients' type.
inline std::int64_t division_workspace(DType type) {
  WorkspaceMeter meter;
  meter.take(size_of(DType::I64));
  meter.take(size_of(type));
  return meter.peak();
}

}  // namespace tandem
