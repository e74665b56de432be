#include "runtime/optimizer/attended_rows.hpp"

#include "runtime/optimizer/kernels.hpp"

namespace tandem {

void score_rows(const AttendedRows& rows, const float* queries, float* scores, std::int64_t pitch, Isa isa) {
  kernels_of(isa).score_rows(rows, queries, scores, pitch);
}

void add_rows(const AttendedRows& rows, const float* weights, std::int64_t pitch, float* sums, Isa isa) {
  kernels_of(isa).add_rows(rows, weights, pitch, sums);
}

}  // namespace tandem
