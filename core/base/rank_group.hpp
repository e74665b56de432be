// Ranks that do something together. All of them know it by the same number, and no other of the run has it.
#pragma once

#include <vector>

#include "core/base/ids.hpp"

namespace tandem {

struct RankGroup {
  std::int32_t number = kNone;
  std::vector<Rank> members;  // that are simulated, or trained
  std::int64_t size = 1;      // all: where ranks are alike, one may stand for many
};

}  // namespace tandem
