// The CPU optimizer of mixed-precision training: an update by any rule over a contiguous span, in one pass over memory.
// Equal to the bit on every instruction set, at every alignment and however a span is cut. Must not know LibTorch,
// graphs or threads: a caller with several gives each a chunk.
#pragma once

#include <cstdint>

#include "core/base/dtype.hpp"
#include "runtime/optimizer/isa.hpp"
#include "runtime/optimizer/low_precision.hpp"
#include "runtime/optimizer/rules/update_formula.hpp"

namespace tandem {

struct UpdateOptions {
  double learning_rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0;
  bool decoupled = false;  // AdamW, Lion
  Rule rule = Rule::Adam;
  double momentum = 0;  // Rule::Momentum
};

// Steps count from 1. The gradient is multiplied by `gradient_scale` in fp32 before all else.
UpdateStep update_step(const UpdateOptions& options, std::int64_t step, float gradient_scale = 1);

// Where the fp32 master parameters are goes by the parameter's type:
//   fp32  `master` is the parameter
//   fp16  `master`; `parameter` is written: the master rounded to nearest, ties to even
//   bf16  split_master()'s halves: `old_parameter` and `master_low` are read, `parameter` and `master_low` written
// Without masters 16-bit parameters are read in `old_parameter`, and written rounded to nearest; bf16: ties away from
// zero, as with masters.
struct UpdateSpan {
  const void* gradient = nullptr;
  // Read and written, those that the rule has: by state_bits fp32 or bf16 numbers, or, with Adam,
  // state_block(state_bits) of quantised ones, of which a span has whole ones.
  void *m = nullptr, *v = nullptr;
  std::int64_t state_bits = 32;
  float* master = nullptr;    // read and written; of no meaning in bf16
  void* parameter = nullptr;  // of no meaning in fp32
  const void* old_parameter = nullptr;
  std::int16_t* master_low = nullptr;
  std::int64_t elements = 0;
  DType gradient_type = DType::F32, parameter_type = DType::F32;
  bool masters = true;
  // Write the parameter past the caches, unless it takes the old one's place: it is not read back soon, and lines that
  // are written whole need not be read first. The states are read anyway; streaming them as well was a third slower.
  bool stream_parameter = true;
  // On a GPU: gets 1 + the bucket's element, of one that is not finite after the update. Null: nobody asks.
  std::int64_t* not_finite = nullptr;
  std::int64_t first_element = 0;  // of the bucket
};

// Operands overlap in one way at most: `parameter` may be the storage of `old_parameter`, or of a gradient of 16 bits.
// Returns whether all that was written is finite; a gradient that is not leaves something that is not.
bool update_elements(const UpdateStep& step, const UpdateSpan& span);
bool update_elements(const UpdateStep& step, const UpdateSpan& span, Isa isa);  // CHECKs that the machine has it

// Elements [first, first + elements) of a span.
UpdateSpan part_of(const UpdateSpan& span, std::int64_t first, std::int64_t elements);

// The chunk of one of `threads` threads: they cover the span, differ by kChunkElements, or a block of quantised states,
// at most (the last is short), and begin at multiples of 64 bytes of every operand, so that no two threads write one
// cache line of a span that is so aligned. Some are empty where a span is short.
inline constexpr std::int64_t kChunkElements = 32;
UpdateSpan chunk_of(const UpdateSpan& span, int thread, int threads);

// What threads take of a span at a time where one may be held up, and leaves some to the others.
inline constexpr std::int64_t kTileElements = 1024 * kChunkElements;

}  // namespace tandem
