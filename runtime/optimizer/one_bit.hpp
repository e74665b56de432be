// 1-bit Adam's two halves over a field (core/formats/one_bit.hpp has the method): what the device makes of a
// gradient, here on the CPU, and the update of masters by the signs that travelled. The same bits on every instruction
// set, on a GPU (runtime/cuda/one_bit.cu), and however a field is cut at whole blocks. Must not know LibTorch, graphs
// or threads.
#pragma once

#include <cstdint>

#include "runtime/optimizer/update.hpp"

namespace tandem {

// Elements of one field from the begin of a block on.
struct MomentumSpan {
  const void* gradient = nullptr;
  DType gradient_type = DType::F32;
  float* kept = nullptr;           // read and written
  std::uint32_t* signs = nullptr;  // sign_words(elements, block) are written
  std::int64_t elements = 0, block = 0;
  float kept_weight = 1;      // beta1 where `kept` is Adam's first moment
  float gradient_weight = 0;  // 1 - beta1
  bool error_feedback = true;
};

// A `gradient_scale` of 0, a skipped step: nothing is sent, and what was kept stays.
void compress_momentum(const MomentumSpan& span, float gradient_scale);

// `masters` has no gradient and no moments.
struct SignSpan {
  const std::uint32_t* signs = nullptr;
  const float* v = nullptr;
  std::int64_t block = 0;
  UpdateSpan masters;
};

// one_bit_update: returns as update_elements does.
// Step of 1-bit Adam after the warm-up: bias corrections are those of `step` for m, of the warm-up's last step for v.
UpdateStep one_bit_step(const UpdateOptions& options, std::int64_t step, std::int64_t warmup_steps);
bool one_bit_update(const UpdateStep& step, const SignSpan& span);
bool one_bit_update(const UpdateStep& step, const SignSpan& span, Isa isa);

// Elements [first, first + elements) of a span; `first` is a multiple of its block.
MomentumSpan part_of(const MomentumSpan& span, std::int64_t first, std::int64_t elements);
SignSpan part_of(const SignSpan& span, std::int64_t first, std::int64_t elements);

}  // namespace tandem
