// The happens-before checker: follows a log and proves that commands which touch the same bytes, one of them writing,
// are ordered by lane order, wait_for, or an event seen before submission. Derives everything from commands and graph
// alone.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/graph/graph.hpp"
#include "core/scheduler/event_log.hpp"

namespace tandem {

class HappensBefore final : public EventLog {
 public:
  // Checks the commands of one rank; `graph` may grow while the log is appended.
  explicit HappensBefore(const Graph& graph, Rank rank = 0, EventLog* next = nullptr);

  void append(const EventBatch& batch) override;
  void append(std::span<const Command> commands) override;

  // "" if all is in order, else a description of the first violation.
  const std::string& violation() const { return violation_; }
  std::int64_t checked() const { return checked_; }

 private:
  using Clock = std::array<CommandId, kLaneCount>;  // per lane, the latest command known to be finished
  struct Touch {
    LaneIndex lane;
    CommandId id;
  };
  struct Stretch {  // bytes with one history, keyed by first offset
    std::int64_t end = 0;
    Touch writer{Engine::Compute, kNoCommand};
    std::vector<Touch> readers;
  };
  using Memory = std::map<std::int64_t, Stretch>;

  void check(const Command& command);
  void touch(const Command& command, const Clock& clock, Tier tier, std::int64_t offset, std::int64_t bytes,
             bool write);
  void require(const Command& command, const Clock& clock, Touch before, std::int64_t offset);
  static void cut(Memory& memory, std::int64_t at);

  const Graph& graph_;
  Rank rank_;
  EventLog* next_;
  Clock seen_;                                 // from events
  std::array<Clock, kLaneCount> lane_clocks_;  // of the latest command of each lane
  std::vector<Clock> clocks_;                  // by command id: what is finished when it starts
  std::vector<LaneIndex> lanes_;
  std::array<Memory, kTierCount> memories_;
  std::string violation_;
  std::int64_t checked_ = 0;
};

}  // namespace tandem
