#include "core/scheduler/log_check.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "core/base/errors.hpp"

namespace tandem {
namespace {

std::string text(std::int64_t number) { return std::to_string(number); }

class LogCheck {
 public:
  LogCheck(const ReadLog& log, std::string name) : log_(log), name_(std::move(name)) {}

  void check() {
    check_header();
    for (std::size_t turn = 0; turn < log_.entries.size(); ++turn) {
      const MemoryLog::Entry& entry = log_.entries[turn];
      line_ = log_.first_lines[turn];
      check_batch(entry.batch, turn);
      for (const Event& event : entry.batch.events) {
        ++line_;
        check_event(event);
      }
      line_ += static_cast<std::int64_t>(entry.batch.inputs.size());
      for (const Command& command : entry.commands) {
        ++line_;
        check_command(command);
      }
      // The schedulers that a log calls for cost memory: each has to be worth a line.
      if (turn == 0 && ranks_.size() < expected_ranks())
        fail("the first batch has commands of " + text(static_cast<std::int64_t>(ranks_.size())) + " of its " +
                 text(log_.header.ranks) + " ranks",
             "commands of each");
    }
  }

 private:
  struct Issued {
    bool has_event = false;         // or wants none
    CommandId before = kNoCommand;  // in its lane
    std::vector<CommandId> wait_for;
  };
  struct RankLog {
    std::vector<Issued> commands;
    std::array<CommandId, kLaneCount> latest{};  // issued in each lane
    RankLog() { latest.fill(kNoCommand); }
  };

  [[noreturn]] void fail(const std::string& problem, const std::string& allowed) const {
    throw ConfigError(name_ + ":" + text(line_) + ":1: log: " + problem + "; allowed: " + allowed);
  }
  std::size_t expected_ranks() const {
    return log_.header.mode == "measured" ? 1 : static_cast<std::size_t>(log_.header.ranks);
  }

  void check_header() {
    line_ = 2;
    const LogHeader& header = log_.header;
    if (header.mode != "simulated" && header.mode != "measured")
      fail("mode is neither of the two", "simulated, measured");
    line_ = 5;
    if (header.rank >= header.ranks)
      fail("rank " + text(header.rank) + " of " + text(header.ranks), "0 to " + text(header.ranks - 1));
  }

  void check_batch(const EventBatch& batch, std::size_t turn) {
    if (batch.observed.ns < 0 || batch.observed.ns > kLatestTimeNs) fail_time(batch.observed.ns);
    if (batch.observed < observed_)
      fail("is observed at " + text(batch.observed.ns) + " ns, before the batch above it",
           text(observed_.ns) + " or more");
    if (turn == 0 && !batch.events.empty()) fail("has events before any command", "none in the first batch");
    observed_ = batch.observed;
  }
  [[noreturn]] void fail_time(std::int64_t ns) const {
    fail("the time " + text(ns) + " ns", "0 to " + text(kLatestTimeNs));
  }

  void check_rank(Rank rank) const {
    const LogHeader& header = log_.header;
    if (header.mode == "measured" && rank != header.rank)
      fail("rank " + text(rank) + " in the log of rank " + text(header.rank), text(header.rank));
    if (rank < 0 || rank >= header.ranks)
      fail("rank " + text(rank) + " of " + text(header.ranks), "0 to " + text(header.ranks - 1));
  }

  const Issued& command_of(const RankLog& rank, CommandId id) const {
    return rank.commands[static_cast<std::size_t>(id)];
  }

  void check_event(const Event& event) {
    check_rank(event.rank);
    RankLog& rank = ranks_[event.rank];
    const auto issued = static_cast<CommandId>(rank.commands.size());
    if (event.command < 0 || event.command >= issued)
      fail("an event of command " + text(event.command) + ", which was not issued",
           issued == 0 ? "none yet" : "0 to " + text(issued - 1));
    Issued& command = rank.commands[static_cast<std::size_t>(event.command)];
    if (command.has_event)
      fail("an event of command " + text(event.command) + ", which has had one or wants none", "one for each r and c");
    const auto require_event = [&](CommandId id, const char* why) {
      if (id != kNoCommand && !command_of(rank, id).has_event)
        fail("an event of command " + text(event.command) + ", before one of command " + text(id) + " " + why,
             "that order the other way round");
    };
    require_event(command.before, "of the same lane");
    for (const CommandId id : command.wait_for) require_event(id, "for which it waits");
    for (const TimeNs time : {event.started, event.finished})
      if (time.ns < -kLatestTimeNs || time.ns > kLatestTimeNs) fail_time(time.ns);
    if (event.finished < event.started) fail("an event that ends before it begins", "an end that is not earlier");
    busy_ns_ += event.finished.ns - event.started.ns;
    if (busy_ns_ > kLatestTimeNs * 512) fail("events that take " + text(busy_ns_) + " ns in all", "fewer");
    command.has_event = true;
    command.wait_for.clear();
  }

  void check_command(const Command& command) {
    check_rank(command.lane.rank);
    RankLog& rank = ranks_[command.lane.rank];
    const auto next = static_cast<CommandId>(rank.commands.size());
    if (command.id != next) fail("command " + text(command.id) + " of rank " + text(command.lane.rank), text(next));
    Issued issued{command.kind == CommandKind::Release, kNoCommand, {}};
    for (const CommandId id : command.wait_for) {
      if (id >= next) fail("command " + text(next) + " waits for command " + text(id), "ids that are smaller");
      if (!command_of(rank, id).has_event) issued.wait_for.push_back(id);
    }
    const std::int64_t room = std::numeric_limits<std::int64_t>::max() - command.part.bytes;
    if (command.part.first_byte > room) fail("a part beyond any value", "first byte and bytes of a value");
    if (command.kind != CommandKind::Release) {
      CommandId& latest = rank.latest[command.lane.index.place()];
      issued.before = latest;
      latest = next;
    }
    rank.commands.push_back(std::move(issued));
  }

  const ReadLog& log_;
  std::string name_;
  std::int64_t line_ = 1;
  std::map<Rank, RankLog> ranks_;
  TimeNs observed_;
  std::int64_t busy_ns_ = 0;
};

}  // namespace

void check_log(const ReadLog& log, const std::string& name) { LogCheck(log, name).check(); }

}  // namespace tandem
