// The one loop that joins schedulers and an executor: the same in every world.
#pragma once

#include <span>

#include "core/scheduler/event_log.hpp"
#include "core/scheduler/scheduler.hpp"
#include "core/scheduler/seam.hpp"

namespace tandem {

// Runs all ranks to their end, or, after a failed command or an Interrupt, until what is in flight has drained.
// Live there is one rank a process; the simulator hosts all ranks.
// Throws DoesNotFit; failures of the world are in Scheduler::failure().
void drive(std::span<Scheduler* const> ranks, Executor& executor, EventLog& log);

}  // namespace tandem
