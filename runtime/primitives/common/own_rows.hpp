// Of rows, or columns, that ranks divide among them, those that this rank has: a call's `ranks` and `part`. Must not
// know ranks otherwise.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/model/module.hpp"

namespace tandem {

// Numbers of rows of all ranks, as places among the rank's own `rows`; and whether they are not there: their places are
// 0, then.
struct OwnRows {
  OwnRows(const Call& call, const at::Tensor& numbers, std::int64_t rows)
      : places(numbers.flatten().sub(call.how.integer("part", 0) * rows)), elsewhere(places.lt(0)) {
    elsewhere.logical_or_(places.ge(rows));
    places.masked_fill_(elsewhere, 0);
  }
  at::Tensor places, elsewhere;
};

inline bool is_divided(const Call& call) { return call.how.integer("ranks", 1) > 1; }

}  // namespace tandem
