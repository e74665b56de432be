// The shape of a value between calls. Must not know what it means, where it is, or who computes it.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <initializer_list>

#include "core/base/dtype.hpp"

namespace tandem {

struct Shape {
  boost::container::small_vector<std::int64_t, 4> dims;
  DType type = DType::F32;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> sizes, DType t) : dims(sizes), type(t) {}
  std::int64_t elements() const {
    std::int64_t n = 1;
    for (const std::int64_t d : dims) n *= d;
    return n;
  }
  std::int64_t bytes() const { return elements() * size_of(type); }
  std::int64_t columns() const { return dims.empty() ? 1 : dims.back(); }
  std::int64_t rows() const { return dims.empty() ? 1 : elements() / dims.back(); }
  bool operator==(const Shape&) const = default;
};

}  // namespace tandem
