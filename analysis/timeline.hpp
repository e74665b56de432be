// When every command of a run was issued, started and finished, by rank and by lane: what all reports are derived from.
// Must not know formats or worlds.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/record.hpp"
#include "core/base/units.hpp"

namespace tandem {

struct TimedCommand {
  const Command* command = nullptr;
  TimeNs issued, started, finished;
  std::int64_t result = 0;
  // The last-finishing event of the batch that this command answered: what the scheduler was waiting for, if anything.
  CommandId trigger = kNoCommand;
  bool done = false;  // has a Finished event; never true for a Release
};

struct RankTimeline {
  Rank rank = 0;
  const Graph* graph = nullptr;
  std::vector<TimedCommand> commands;                    // by CommandId
  std::array<std::vector<CommandId>, kLaneCount> lanes;  // commands that finished, in issue order
  const TimedCommand& at(CommandId id) const { return commands[static_cast<std::size_t>(id)]; }
  const std::vector<CommandId>& lane(LaneIndex lane) const { return lanes[lane.place()]; }
};

struct Timeline {
  std::vector<RankTimeline> ranks;
  std::int64_t commands_count = 0;  // Run and Copy commands, finished or not
  TimeNs makespan;                  // the last finish
};

// The record's log and graphs must outlive the result.
Timeline make_timeline(const RunRecord& record);

// "device0/compute"
std::string lane_name(Rank rank, LaneIndex lane);
// What a command does, for people: "step1/mb0/block3.forward", "copy block3.parameter@1".
std::string command_name(const Graph& graph, const Command& command);
// The rank whose memory or lane a command concerns.
Rank rank_of(const Command& command);
// Bytes that an event's `result` holds as a double.
double as_double(std::int64_t bits);

}  // namespace tandem
