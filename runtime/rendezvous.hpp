// Where the ranks of a run find each other, and ranks that others have started: torchrun, or a shell. Must not know
// what ranks do.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/base/ids.hpp"

namespace tandem {

struct StartedRank {
  Rank rank = 0;
  std::int32_t ranks = 1;
  std::string meeting;  // as of open_meeting (meeting_store.hpp)
};

// As torchrun's variables say: RANK and WORLD_SIZE; MASTER_ADDR, this host's loopback if unset; MASTER_PORT, 29500 if
// unset. None where the first two are unset, or there is one rank. Throws ConfigError that names the variable.
std::optional<StartedRank> started_rank();

// What such ranks cannot have: other processes than there are (`nproc`: asked for, 0: none), another number than the
// scenario's, and a worker that one of them starts for all. Throw ConfigError.
void require_processes(const StartedRank& started, std::int64_t nproc);
void require_ranks(const StartedRank& started, std::int32_t of_scenario, bool starts_worker);

// Of a meeting: whether it is no file.
bool is_address(const std::string& meeting);

// Returns once all ranks have come here, each after its last collective. Who leaves earlier is taken for lost. Throws
// DeviceError, and what `look` does, which is called now and then while others are waited for.
void end_together(const std::string& meeting, Rank rank, std::int32_t ranks,
                  const std::function<void(const std::string& waits_for)>& look);

}  // namespace tandem
