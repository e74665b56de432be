// How old parameters are that asynchronous servers' workers make gradients of. Must not know formats or worlds.
#pragma once

#include <cstdint>
#include <optional>

#include "core/scenario/scenario.hpp"

namespace tandem {

// Of an update: how many others were made since its worker got the parameters.
struct Staleness {
  double mean = 0;
  std::int64_t most = 0, updates = 0;
};

// Over a run of so many steps, known from the order of its updates. None: it has no asynchronous servers.
std::optional<Staleness> staleness(const Scenario& scenario, std::int64_t steps);

}  // namespace tandem
