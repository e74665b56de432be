// What is asked of a gradient before it is used: its sum of squares, in a fixed order whatever the schedule, the
// threads or the instruction set (part of the result of clipping), and whether all of it is finite. Must not know
// buckets.
#pragma once

#include <cstdint>

#include "core/base/dtype.hpp"
#include "runtime/optimizer/isa.hpp"

namespace tandem {

struct GradientCheck {
  double sum_of_squares;
  bool finite;
};

// fp32, bf16 or fp16. The sum is in double, over blocks of kNormBlock elements in order. Within a block, element i
// belongs to sum i mod 8; the eight are then added in order.
GradientCheck check_gradient(const void* gradient, DType type, std::int64_t elements);
GradientCheck check_gradient(const void* gradient, DType type, std::int64_t elements, Isa isa);
double sum_of_squares(const float* gradient, std::int64_t elements);

}  // namespace tandem
