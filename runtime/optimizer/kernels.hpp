// The loops of one instruction set, each compiled in a file of its own with that set's flags. Such a file leaves no
// function with external linkage behind but its table: the linker might keep its copy of a shared inline function for
// processors that lack the instructions.
#pragma once

#include <cstdint>

#include "runtime/optimizer/attended_rows.hpp"
#include "runtime/optimizer/one_bit.hpp"
#include "runtime/optimizer/update.hpp"

namespace tandem {

struct Kernels {
  bool (*update)(const UpdateStep& step, const UpdateSpan& span);
  double (*square_sum)(const void* gradient, DType type, std::int64_t elements);  // of one block
  bool (*one_bit)(const UpdateStep& step, const SignSpan& span);
  void (*score_rows)(const AttendedRows& rows, const float* queries, float* scores, std::int64_t pitch);
  void (*add_rows)(const AttendedRows& rows, const float* weights, std::int64_t pitch, float* sums);
};

extern const Kernels kScalarKernels;
#ifdef __x86_64__
extern const Kernels kAvx2Kernels, kAvx512Kernels;
#endif

const Kernels& kernels_of(Isa isa);  // CHECKs that the machine has it

}  // namespace tandem
