// Adam whose momentum travels as signs (1-bit Adam): core/formats/one_bit.hpp has the method. Must not know policies.
#pragma once

#include <cstdint>

#include "core/graph/rewrite.hpp"

namespace tandem {

struct OneBitUpdate {
  std::int64_t warmup_steps = 0;  // of plain Adam, at least 1
  std::int64_t block = 0;         // numbers that share a scale, a multiple of 32
  bool error_feedback = true;     // what was not sent is added to what is sent next
};

std::shared_ptr<const Rewrite> one_bit(const OneBitUpdate& update);
// Null: the rewrites have none.
const OneBitUpdate* one_bit_of(const Rewrites& rewrites);

}  // namespace tandem
