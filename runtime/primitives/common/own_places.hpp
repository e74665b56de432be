// Of a sequence's places that ranks divide among them, those that this rank has: a call's `sequence`, `ranks`, `part`
// and `every_nth`. Must not know ranks otherwise.
#pragma once

#include <cstdint>

#include "core/model/module.hpp"

namespace tandem {

// In a row, or every Nth of N ranks.
struct OwnPlaces {
  explicit OwnPlaces(const Call& call)
      : count(call.how.integer("sequence")),
        step(call.how.integer("every_nth", 0) != 0 ? call.how.integer("ranks") : 1),
        first(call.how.integer("part", 0) * (step > 1 ? 1 : count)) {}
  std::int64_t end() const { return first + (count - 1) * step + 1; }  // behind the last one
  std::int64_t count, step, first;
};

}  // namespace tandem
