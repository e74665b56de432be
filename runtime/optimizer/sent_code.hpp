// What core/formats/sent_code.hpp says, done on the CPU: numbers to codes and back, and the mean of codes. The same
// bits on a GPU (runtime/cuda/sent_code.cu), and however numbers are cut at whole units. Must not know LibTorch, graphs
// or threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/formats/sent_code.hpp"
#include "runtime/optimizer/update.hpp"

namespace tandem {

// What is sent. Of a gradient, fp32 or bf16: the gradient itself. With a momentum too: what that becomes by it.
// Neither: the mean of `ranks` codes, `stride` bytes from each other: the sum in their order, then one division.
struct SentNumbers {
  const void* gradient = nullptr;
  DType gradient_type = DType::F32;
  const float* momentum = nullptr;
  float momentum_weight = 0, gradient_weight = 0;
  const std::byte* codes = nullptr;
  std::int64_t ranks = 0, stride = 0;
};

// The code of numbers, and of what earlier codes left out, in `kept`, which gets what this one leaves out. Null:
// nothing is kept. A number beyond fp16's largest is sent as that.
struct EncodeSpan {
  SentCode code;
  SentNumbers numbers;
  float* kept = nullptr;
  std::byte* sent = nullptr;
  std::int64_t elements = 0;
};
void encode(const EncodeSpan& span);

// `numbers`: fp32 or bf16.
struct DecodeSpan {
  SentCode code;
  const std::byte* sent = nullptr;
  void* numbers = nullptr;
  DType type = DType::F32;
  std::int64_t elements = 0;
};
void decode(const DecodeSpan& span);

// Elements [first, first + elements) of a span; `first` is a multiple of its code's unit.
EncodeSpan part_of(const EncodeSpan& span, std::int64_t first, std::int64_t elements);
DecodeSpan part_of(const DecodeSpan& span, std::int64_t first, std::int64_t elements);

// Adam's step by a momentum that was sent (one_bit_step), over elements of one field. `masters` has no gradient and no
// moments. Returns as update_elements does.
struct SentSpan {
  const float* m = nullptr;
  const float* v = nullptr;
  UpdateSpan masters;
};
bool one_bit_update(const UpdateStep& step, const SentSpan& span);
SentSpan part_of(const SentSpan& span, std::int64_t first, std::int64_t elements);

}  // namespace tandem
