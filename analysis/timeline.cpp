#include "analysis/timeline.hpp"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "core/base/check.hpp"

namespace tandem {
namespace {

// A record of one rank may be of any rank (one process a rank); a record of many has them in order, or says which.
class Ranks {
 public:
  Ranks(Timeline& timeline, const std::vector<Rank>& told) : timeline_(timeline) {
    for (std::size_t i = 0; i < told.size(); ++i) places_.emplace(told[i], i);
  }
  RankTimeline& of(Rank rank) {
    const std::size_t place = place_of(rank);
    CHECK(place < timeline_.ranks.size(), rank);
    timeline_.ranks[place].rank = rank;
    return timeline_.ranks[place];
  }

 private:
  std::size_t place_of(Rank rank) const {
    if (timeline_.ranks.size() == 1) return 0;
    return places_.empty() ? static_cast<std::size_t>(rank) : places_.at(rank);
  }

  Timeline& timeline_;
  std::unordered_map<Rank, std::size_t> places_;
};

void take_events(const EventBatch& batch, Ranks& ranks, Timeline& timeline) {
  for (const Event& event : batch.events) {
    RankTimeline& rank = ranks.of(event.rank);
    CHECK(event.command >= 0 && static_cast<std::size_t>(event.command) < rank.commands.size(), event.command);
    TimedCommand& timed = rank.commands[static_cast<std::size_t>(event.command)];
    CHECK(timed.command != nullptr, "an event for a command that was not issued", event.command);
    if (event.outcome != Outcome::Finished) continue;
    timed.started = event.started;
    timed.finished = event.finished;
    timed.result = event.result;
    timed.done = true;
    timeline.makespan = std::max(timeline.makespan, event.finished);
  }
}

CommandId last_finished(const EventBatch& batch, const RankTimeline& rank) {
  const Event* last = nullptr;
  for (const Event& event : batch.events) {
    if (event.rank != rank.rank || event.outcome != Outcome::Finished) continue;
    if (last == nullptr || event.finished > last->finished) last = &event;
  }
  return last == nullptr ? kNoCommand : last->command;
}

void take_commands(const MemoryLog::Entry& entry, Ranks& ranks, Timeline& timeline) {
  const RankTimeline* before = nullptr;
  CommandId trigger = kNoCommand;
  for (const Command& command : entry.commands) {
    RankTimeline& rank = ranks.of(rank_of(command));
    if (&rank != before) trigger = last_finished(entry.batch, rank);
    before = &rank;
    const auto index = static_cast<std::size_t>(command.id);
    if (index >= rank.commands.size()) rank.commands.resize(index + 1);
    TimedCommand& timed = rank.commands[index];
    timed.command = &command;
    timed.issued = entry.batch.observed;
    timed.trigger = trigger;
    if (command.kind != CommandKind::Release) ++timeline.commands_count;
  }
}

// By the last command of each rank: a list that grows as it is filled ends up to twice as long.
void make_room(const std::vector<MemoryLog::Entry>& entries, Ranks& ranks, std::size_t left) {
  for (auto entry = entries.rbegin(); entry != entries.rend() && left > 0; ++entry)
    for (auto command = entry->commands.rbegin(); command != entry->commands.rend(); ++command) {
      RankTimeline& rank = ranks.of(rank_of(*command));
      if (!rank.commands.empty()) continue;
      rank.commands.resize(static_cast<std::size_t>(command->id) + 1);
      --left;
    }
}

void sort_into_lanes(RankTimeline& rank) {
  for (std::size_t id = 0; id < rank.commands.size(); ++id) {
    const TimedCommand& timed = rank.commands[id];
    if (!timed.done) continue;
    rank.lanes[timed.command->lane.index.place()].push_back(static_cast<CommandId>(id));
  }
}

}  // namespace

Timeline make_timeline(const RunRecord& record) {
  Timeline timeline;
  timeline.ranks.resize(record.ranks.size());
  for (std::size_t i = 0; i < record.ranks.size(); ++i) {
    timeline.ranks[i].rank = record.told.empty() ? static_cast<Rank>(i) : record.told[i];
    timeline.ranks[i].graph = record.ranks[i].graph;
  }
  Ranks ranks(timeline, record.told);
  make_room(record.log->entries(), ranks, timeline.ranks.size());
  for (const MemoryLog::Entry& entry : record.log->entries()) {
    take_events(entry.batch, ranks, timeline);
    take_commands(entry, ranks, timeline);
  }
  for (RankTimeline& rank : timeline.ranks) sort_into_lanes(rank);
  return timeline;
}

std::string lane_name(Rank rank, LaneIndex lane) { return "device" + std::to_string(rank) + "/" + name_of(lane); }

std::string command_name(const Graph& graph, const Command& command) {
  if (command.kind == CommandKind::Run) return graph.op_name(command.op);
  const std::string verb = command.kind == CommandKind::Copy ? "copy " : "release ";
  return verb + graph.value_name(command.part.value);
}

Rank rank_of(const Command& command) {
  return command.kind == CommandKind::Release ? command.source.rank : command.lane.rank;
}

double as_double(std::int64_t bits) {
  double value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace tandem
