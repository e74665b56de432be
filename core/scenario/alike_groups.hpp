// Where ranks are alike and one stands for many (parallel.fold): the groups of all devices that a folded group stands
// for. Must not know links.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/scenario/scenario.hpp"

namespace tandem {

class AlikeGroups {
 public:
  // Of a scenario that folds its ranks.
  explicit AlikeGroups(const Scenario& scenario);
  std::int64_t device_count() const;
  // By a group's number (ranks.hpp): the devices of each group that it stands for, its own first; of a transfer, from
  // the first to the second. Empty: it has no such number.
  std::vector<std::vector<std::int64_t>> devices(std::int32_t group) const;

 private:
  std::shared_ptr<const Scenario> folded_, all_;  // the same without folding
};

}  // namespace tandem
