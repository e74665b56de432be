// The one table from Tandem's element types to LibTorch's. Includes only c10.
#pragma once

#include <c10/core/ScalarType.h>

#include "core/graph/graph.hpp"

namespace tandem {

constexpr c10::ScalarType torch_type(DType type) {
  switch (type) {
    case DType::F16:
      return c10::ScalarType::Half;
    case DType::BF16:
      return c10::ScalarType::BFloat16;
    case DType::F64:
      return c10::ScalarType::Double;
    case DType::I64:
      return c10::ScalarType::Long;
    case DType::I16:
      return c10::ScalarType::Short;
    case DType::U8:
      return c10::ScalarType::Byte;
    case DType::F32:
      break;
  }
  return c10::ScalarType::Float;
}

}  // namespace tandem
