// The CPU optimizer of mixed-precision training: Adam and AdamW over a contiguous span, in one pass over memory.
// Equal to the bit on every instruction set, at every alignment and however a span is cut. Must not know LibTorch,
// graphs or threads: a caller with several gives each a chunk.
#pragma once

#include <cstdint>

#include "core/base/dtype.hpp"
#include "runtime/optimizer/adam_formula.hpp"
#include "runtime/optimizer/isa.hpp"
#include "runtime/optimizer/low_precision.hpp"

namespace tandem {

struct AdamOptions {
  double learning_rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0;
  bool decoupled = false;  // AdamW
};

// Steps count from 1. The gradient is multiplied by `gradient_scale` in fp32 before all else.
AdamStep adam_step(const AdamOptions& options, std::int64_t step, float gradient_scale = 1);

// Where the fp32 master parameters are goes by the parameter's type:
//   fp32  `master` is the parameter
//   fp16  `master`; `parameter` is written: the master rounded to nearest, ties to even
//   bf16  split_master()'s halves: `old_parameter` and `master_low` are read, `parameter` and `master_low` written
struct AdamSpan {
  const void* gradient = nullptr;
  float *m = nullptr, *v = nullptr;                       // read and written, unless they are quantised:
  std::uint8_t *m_blocks = nullptr, *v_blocks = nullptr;  // state_block(state_bits), of which a span has whole ones
  std::int64_t state_bits = 32;
  float* master = nullptr;    // read and written; of no meaning in bf16
  void* parameter = nullptr;  // of no meaning in fp32
  const BFloat16* old_parameter = nullptr;
  std::int16_t* master_low = nullptr;
  std::int64_t elements = 0;
  DType gradient_type = DType::F32, parameter_type = DType::F32;
  // Write the parameter past the caches, unless it takes the old one's place: it is not read back soon, and lines that
  // are written whole need not be read first. The states are read anyway; streaming them as well was a third slower.
  bool stream_parameter = true;
  // On a GPU: gets 1 + the bucket's element, of one that is not finite after the update. Null: nobody asks.
  std::int64_t* not_finite = nullptr;
  std::int64_t first_element = 0;  // of the bucket
};

// Operands overlap in one way at most: `parameter` may be the storage of `old_parameter`, or of a gradient of 16 bits.
// Returns whether all that was written is finite; a gradient that is not leaves something that is not.
bool adam_update(const AdamStep& step, const AdamSpan& span);
bool adam_update(const AdamStep& step, const AdamSpan& span, Isa isa);  // CHECKs that the machine has it

// Elements [first, first + elements) of a span.
AdamSpan part_of(const AdamSpan& span, std::int64_t first, std::int64_t elements);

// The chunk of one of `threads` threads: they cover the span, differ by kChunkElements, or a block of quantised states,
// at most (the last is short), and begin at multiples of 64 bytes of every operand, so that no two threads write one
// cache line of a span that is so aligned. Some are empty where a span is short.
inline constexpr std::int64_t kChunkElements = 32;
AdamSpan chunk_of(const AdamSpan& span, int thread, int threads);

// What threads take of a span at a time where one may be held up, and leaves some to the others.
inline constexpr std::int64_t kTileElements = 1024 * kChunkElements;

}  // namespace tandem
