// The bytes that the steps of any run of a graph must move between tiers: what is made on one side and read on the
// other, and what cannot have stayed where it was because it all exists at once. Must not know rates or schedules.
#pragma once

#include <array>
#include <cstdint>

#include "analysis/compulsory.hpp"
#include "analysis/share_classes.hpp"
#include "core/scenario/scenario.hpp"

namespace tandem {

struct CompulsoryBytes {
  // H2D, D2H: of each two bounds that both hold, the second with the states that are updated on the device
  std::array<Amount, 2> up, down;
  Amount disk_read, disk_write;
  std::int64_t up_copies = 0,
               down_copies = 0;  // values that cross whatever the shares: each pays a latency at least once
};

CompulsoryBytes compulsory_bytes(const Graph& graph, const Sides& sides, const SteadyState& steady,
                                 const Scenario& scenario, std::int64_t ranks, States states);

}  // namespace tandem
