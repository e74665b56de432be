// This program's operator new, of which a test may have the k-th call fail, or all from then on. Must not know who
// asks.
#pragma once

#include <cstdint>

namespace tandem::testing {

struct FailingAllocations {
  std::int64_t first = -1;   // the call that fails, counted from 0 since they are armed; -1: none
  bool all_after = false;    // and all later ones, as where a limit is reached
  bool this_thread = false;  // calls of the thread that arms them alone count
};

// While one lives, allocations are counted and fail as told.
class ArmedAllocations {
 public:
  explicit ArmedAllocations(const FailingAllocations& failing);
  ~ArmedAllocations();
  ArmedAllocations(const ArmedAllocations&) = delete;
  ArmedAllocations& operator=(const ArmedAllocations&) = delete;

  static std::int64_t calls();  // since the last were armed
  static bool failed();
};

}  // namespace tandem::testing
