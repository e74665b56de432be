// What is still to do, by the estimates, before either side could begin with one more update that both share: the CPU,
// and the bus that brings the device its states. A part of policies that divide updates; decides nothing.
#pragma once

#include <vector>

#include "core/policies/common/shared_update.hpp"

namespace tandem {

struct UpdateBacklog {
  double cpu_ns = 0, bus_ns = 0;
};
// `under_way` in the order in which they were begun. The CPU can begin with none before its gradient is there.
UpdateBacklog update_backlog(const View& view, const std::vector<SharedUpdate>& under_way, const Bucket& next);

}  // namespace tandem
