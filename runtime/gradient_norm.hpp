// The sum of squares of a gradient in a fixed order, whatever the schedule, the threads or the vector width: part of
// the result of clipping. Must not know buckets.
#pragma once

#include <cstdint>

namespace tandem {

// In double, over blocks of kNormBlock elements in order. Within a block, element i belongs to sum i mod 8; the eight
// are then added in order.
double sum_of_squares(const float* gradient, std::int64_t elements);

// min(1, clip / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_.
double clip_coefficient(double sum_of_squares, double clip_norm);

}  // namespace tandem
