// How long a real run may stand still: of no concern to schedulers and simulators, so no part of what they are given.
#pragma once

#include <cstdint>

#include "core/scenario/scenario.hpp"

namespace tandem {

// Nanoseconds, as the checked text of a scenario says it; 60 s where it says nothing.
std::int64_t watchdog_ns(const Scenario& scenario);

}  // namespace tandem
