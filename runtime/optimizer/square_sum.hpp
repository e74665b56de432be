// The sum of squares of one block, for any vector type; included by the files of the instruction sets alone, whose Ops
// has kSums accumulators in double as Sums, with add_squares of as many elements and store.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/base/dtype.hpp"
#include "runtime/optimizer/low_precision.hpp"

namespace tandem {

// Element i belongs to sum i mod 8; the eight are then added in order. The square of a float is exact in double, so
// that it is the same whether fused with the addition or not.
inline constexpr int kSums = 8;

template <class Ops, class Number>
double square_sum_of(const void* gradient, std::int64_t elements) {
  const auto* at = static_cast<const Number*>(gradient);
  typename Ops::Sums sums{};
  for (; elements >= kSums; elements -= kSums, at += kSums) Ops::add_squares(sums, at);
  if (elements > 0) {
    Number rest[kSums] = {};
    std::memcpy(rest, at, static_cast<std::size_t>(elements) * sizeof(Number));
    Ops::add_squares(sums, rest);
  }
  double lanes[kSums];
  Ops::store(lanes, sums);
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

template <class Ops>
double square_sum_kernel(const void* gradient, DType type, std::int64_t elements) {
  if (type == DType::BF16) return square_sum_of<Ops, BFloat16>(gradient, elements);
  if (type == DType::F16) return square_sum_of<Ops, Float16>(gradient, elements);
  return square_sum_of<Ops, float>(gradient, elements);
}

}  // namespace tandem
