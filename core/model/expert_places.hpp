// Experts' buffers [experts * capacity, hidden] and the places in them of tokens' choices (primitives route, dispatch,
// combine). Must not know who fills them.
#pragma once

#include <cstdint>

#include "core/base/dtype.hpp"

namespace tandem {

// Of each of `slots`, which choice has it: made from places, on the way to what is done with it.
inline std::int64_t slot_table_bytes(std::int64_t slots, std::int64_t choices, bool gpu) {
  constexpr std::int64_t kTables = 3, kGranules = 1 << 10;
  // A GPU that must give the same numbers each time sorts where each choice goes, in buffers of its own.
  constexpr std::int64_t kSorted = 6, kSorting = 16 << 20, kGpuGranules = 16 << 10;
  const std::int64_t sorting = gpu ? kSorted * choices * size_of(DType::I64) + kSorting + kGpuGranules : 0;
  return kTables * (slots + 1 + choices) * size_of(DType::I64) + slots + choices + kGranules + sorting;
}

}  // namespace tandem
