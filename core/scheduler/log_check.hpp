// Whether a log that was read can be what a run recorded: each event is of a command that was issued before it, once,
// and in an order that lanes and waits allow. A log may come from anywhere; what it says is checked before a scheduler
// takes it for true. Must not know graphs: replaying compares each command with the scheduler's own.
#pragma once

#include <string>

#include "core/scheduler/event_log.hpp"

namespace tandem {

// Throws ConfigError "name:line:1: log: problem; what is allowed".
void check_log(const ReadLog& log, const std::string& name);

// In ns. A run of 104 days; sums of as many durations as a lane has commands stay in 63 bits.
inline constexpr std::int64_t kLatestTimeNs = std::int64_t{1} << 53;

}  // namespace tandem
