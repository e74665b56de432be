// Attention of one token of a text to keys and values that lie by rows, a row a token: products of a row with queries,
// and sums of rows by weights. Sums are of kLanes parts, added up by halves, on all instruction sets.
#pragma once

#include <cstdint>

#include "core/base/dtype.hpp"
#include "runtime/optimizer/isa.hpp"

namespace tandem {

// Some rows of one text: in each, `heads` heads lie side by side, of `size` numbers each.
struct AttendedRows {
  const void* first = nullptr;
  DType type = DType::F32;                                  // F32, BF16 or F16
  std::int64_t count = 0, stride = 0, heads = 1, size = 1;  // `stride`: numbers from one row to the next
  std::int64_t group = 1;                                   // queries of each head, side by side
};

// scores[(h group + g) pitch + row] = queries[(h group + g) size ...] . row's head h. Queries are scaled, and whole.
void score_rows(const AttendedRows& rows, const float* queries, float* scores, std::int64_t pitch,
                Isa isa = best_isa());
// sums[(h group + g) size ...] += weights[(h group + g) pitch + row] * row's head h.
void add_rows(const AttendedRows& rows, const float* weights, std::int64_t pitch, float* sums, Isa isa = best_isa());

}  // namespace tandem
