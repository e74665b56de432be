// What rules of operators share: broadcasting, promotion of types, sizes that are checked. Must not know an operator.
#pragma once

#include <algorithm>

#include "core/model/imported/operators.hpp"

namespace tandem {

inline void require(bool holds, std::size_t argument, const char* problem, const char* allowed) {
  if (!holds) throw Unsuitable(argument, problem, allowed);
}

// Throws for sizes below zero, and for more dimensions or numbers than any tensor has.
inline TensorType made(Element element, Sizes dims, std::size_t argument = 0) {
  require(dims.size() <= kMostDimensions, argument, "has too many dimensions", "8 at most");
  std::int64_t numbers = 1;
  for (const std::int64_t d : dims)
    require(d >= 0 && !__builtin_mul_overflow(numbers, d, &numbers) && numbers <= kMostNumbers, argument,
            "is of no size that a tensor has", "2^44 numbers at most");
  return {element, std::move(dims)};
}

inline Sizes sizes_of(const std::vector<std::int64_t>& list) { return {list.begin(), list.end()}; }

inline Sizes broadcast(const Sizes& a, const Sizes& b, std::size_t argument) {
  Sizes out(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
    require(x == y || x == 1 || y == 1, argument, "has a shape that does not meet the others'",
            "shapes that broadcast");
    out[out.size() - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

// As PyTorch promotes: a tensor with dimensions outweighs one without, and that a number, within their category.
Element promoted(const CallView& call, std::initializer_list<std::size_t> arguments);
// Of tensors and numbers among them.
Sizes broadcast_of(const CallView& call, std::initializer_list<std::size_t> arguments);

inline std::int64_t read_bytes(const CallView& call) {
  std::int64_t bytes = 0;
  for (const TensorType* type : call.read()) bytes += type->bytes();
  return bytes;
}
inline std::int64_t bytes_of(const TensorTypes& types) {
  std::int64_t bytes = 0;
  for (const TensorType& type : types) bytes += type.bytes();
  return bytes;
}
// For kernels that copy operands into an order of their own.
inline std::int64_t copies_of_operands(const CallView& call, const TensorTypes& out, std::int64_t, bool) {
  return read_bytes(call) + bytes_of(out);
}

}  // namespace tandem
