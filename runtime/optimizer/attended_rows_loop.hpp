// The loops of attended_rows.hpp over an instruction set's vectors. Included by kernels_*.cpp alone: everything here
// has a parameter of theirs.
#pragma once

#include <cstring>

#include "core/base/dtype.hpp"
#include "runtime/optimizer/attended_rows.hpp"
#include "runtime/optimizer/low_precision.hpp"
#include "runtime/optimizer/rules/update_formula.hpp"

namespace tandem {

template <class Ops, class T>
class RowLoops {
 public:
  static void score(const AttendedRows& rows, const float* queries, float* scores, std::int64_t pitch) {
    const T* row = static_cast<const T*>(rows.first);
    for (std::int64_t i = 0; i < rows.count; ++i, row += rows.stride)
      for (std::int64_t h = 0, q = 0; h < rows.heads; ++h)
        for (std::int64_t g = 0; g < rows.group; ++g, ++q)
          scores[q * pitch + i] = product(queries + q * rows.size, row + h * rows.size, rows.size);
  }

  static void add(const AttendedRows& rows, const float* weights, std::int64_t pitch, float* sums) {
    const T* row = static_cast<const T*>(rows.first);
    for (std::int64_t i = 0; i < rows.count; ++i, row += rows.stride)
      for (std::int64_t h = 0, q = 0; h < rows.heads; ++h)
        for (std::int64_t g = 0; g < rows.group; ++g, ++q)
          add_row(weights[q * pitch + i], row + h * rows.size, rows.size, sums + q * rows.size);
  }

 private:
  using Number = typename Ops::Number;
  static constexpr int kWidth = Ops::kElements, kLanes = 32, kVectors = kLanes / kWidth;

  static float product(const float* query, const T* row, std::int64_t size) {
    float lanes[kLanes];
    for (int i = 0; i < kLanes; ++i) lanes[i] = 0;
    std::int64_t i = 0;
    Number sums[kVectors];
    for (int v = 0; v < kVectors; ++v) sums[v] = Ops::load(lanes);
    for (; i + kLanes <= size; i += kLanes) add_products(query + i, row + i, sums);
    if (i < size) {
      float last_query[kLanes] = {};
      T last_row[kLanes] = {};
      std::memcpy(last_query, query + i, static_cast<std::size_t>(size - i) * sizeof(float));
      std::memcpy(last_row, row + i, static_cast<std::size_t>(size - i) * sizeof(T));
      add_products(last_query, last_row, sums);
    }
    for (int v = 0; v < kVectors; ++v) Ops::store(lanes + v * kWidth, sums[v]);
    for (int half = kLanes / 2; half > 0; half /= 2)
      for (int j = 0; j < half; ++j) lanes[j] += lanes[j + half];
    return lanes[0];
  }
  static void add_products(const float* query, const T* row, Number (&sums)[kVectors]) {
    using namespace rounded;  // a scalar's
    for (int v = 0; v < kVectors; ++v)
      sums[v] = fused_multiply_add(Ops::load(query + v * kWidth), Ops::load(row + v * kWidth), sums[v]);
  }

  static void add_row(float weight, const T* row, std::int64_t size, float* sums) {
    using namespace rounded;
    const Number factor(weight);
    std::int64_t i = 0;
    for (; i + kWidth <= size; i += kWidth)
      Ops::store(sums + i, fused_multiply_add(factor, Ops::load(row + i), Ops::load(sums + i)));
    if (i == size) return;
    float last_sums[kWidth] = {};
    T last_row[kWidth] = {};
    const auto left = static_cast<std::size_t>(size - i);
    std::memcpy(last_sums, sums + i, left * sizeof(float));
    std::memcpy(last_row, row + i, left * sizeof(T));
    Ops::store(last_sums, fused_multiply_add(factor, Ops::load(last_row), Ops::load(last_sums)));
    std::memcpy(sums + i, last_sums, left * sizeof(float));
  }
};

template <class Ops>
void score_rows_of(const AttendedRows& rows, const float* queries, float* scores, std::int64_t pitch) {
  if (rows.type == DType::F16) return RowLoops<Ops, Float16>::score(rows, queries, scores, pitch);
  if (rows.type == DType::BF16) return RowLoops<Ops, BFloat16>::score(rows, queries, scores, pitch);
  RowLoops<Ops, float>::score(rows, queries, scores, pitch);
}

template <class Ops>
void add_rows_of(const AttendedRows& rows, const float* weights, std::int64_t pitch, float* sums) {
  if (rows.type == DType::F16) return RowLoops<Ops, Float16>::add(rows, weights, pitch, sums);
  if (rows.type == DType::BF16) return RowLoops<Ops, BFloat16>::add(rows, weights, pitch, sums);
  RowLoops<Ops, float>::add(rows, weights, pitch, sums);
}

}  // namespace tandem
