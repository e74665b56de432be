// Sizes that both the plan and the bodies of the optimizer's side rely on. Must not know networks.
#pragma once

#include <cstdint>

namespace tandem {

// Elements of one partial sum of the gradient norm. The order of sums is part of the result: a field's squares are
// added in blocks of this many elements, the blocks in order.
inline constexpr std::int64_t kNormBlock = std::int64_t{64} * 1024;
constexpr std::int64_t norm_blocks(std::int64_t elements) { return (elements + kNormBlock - 1) / kNormBlock; }

// Added to the norm that a gradient is clipped by, as torch.nn.utils.clip_grad_norm_ does.
inline constexpr double kClipEpsilon = 1e-6;

// What all gradients of a step decide for its update (runtime/optimizer/update_control.hpp), and the state of fp16's
// loss scale, of which the backward of the loss reads the four bytes at kLossScaleOffset.
inline constexpr std::int64_t kUpdateControlBytes = 16;
inline constexpr std::int64_t kLossScaleBytes = 24, kLossScaleOffset = 16;
static_assert(kLossScaleOffset + 4 <= kLossScaleBytes);

// Elements of fp32 that LibTorch's Adam on the CPU updates alike, whatever the processor: a vector of AVX-512, two of
// AVX2.
inline constexpr std::int64_t kWholeVector = 16;

// Adafactor, as torch.optim.Adafactor has it by default: the rate at which its means of squares forget (step^kDecay),
// the least square, the least of a parameter's root mean square, and what an update's is brought down to.
inline constexpr double kAdafactorDecay = -0.8, kAdafactorLeast = 0x1p-23, kAdafactorLeastScale = 1e-3,
                        kAdafactorClip = 1;

// The optimizer's step count as a LibTorch scalar: one granule of its allocator. Under clipping, LibTorch makes two
// more of the coefficient.
inline constexpr std::int64_t kStepCountBytes = 64;
inline constexpr std::int64_t kClippingScalarBytes = std::int64_t{2} * 64;

}  // namespace tandem
