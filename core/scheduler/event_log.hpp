// The event log: everything that crossed the seam, in order, and enough of a header to run it again.
// Must not know files' formats of reports, or any world.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/scheduler/seam.hpp"

namespace tandem {

struct LogHeader {
  int schema = 1;
  std::string mode;      // "simulated" | "measured"
  std::string scenario;  // the scenario's text after --set
  std::string profile;   // the profile's text
  std::string build;     // version
  std::uint64_t seed = 0;
  Rank rank = 0;  // live: this process's rank; simulated: 0, all ranks in one log
  std::int32_t ranks = 1;
  std::int32_t first_step = 0;  // of a resumed run: Scenario::first_step
};

// Where drive() records. The scheduler never reads it.
class EventLog {
 public:
  virtual ~EventLog() = default;
  virtual void append(const EventBatch& batch) = 0;
  virtual void append(std::span<const Command> commands) = 0;
};

class NoLog final : public EventLog {
 public:
  void append(const EventBatch&) override {}
  void append(std::span<const Command>) override {}
};

// Keeps all in memory: what reports, the replay executor and the checkers read.
class MemoryLog final : public EventLog {
 public:
  struct Entry {  // one turn of drive(): a batch, and the commands that answered it
    EventBatch batch;
    std::vector<Command> commands;
  };
  void append(const EventBatch& batch) override { entries_.push_back({batch, {}}); }
  void append(std::span<const Command> commands) override {
    entries_.back().commands.insert(entries_.back().commands.end(), commands.begin(), commands.end());
  }
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
};

// Records into two: what a run keeps, and what watches it (null: nobody).
class TeeLog final : public EventLog {
 public:
  TeeLog(EventLog& kept, EventLog* watcher) : kept_(kept), watcher_(watcher) {}
  void append(const EventBatch& batch) override {
    kept_.append(batch);
    if (watcher_ != nullptr) watcher_->append(batch);
  }
  void append(std::span<const Command> commands) override {
    kept_.append(commands);
    if (watcher_ != nullptr) watcher_->append(commands);
  }

 private:
  EventLog& kept_;
  EventLog* watcher_;
};

// One line a record, text, the same bytes for the same log. Format: docs/log_format.md.
std::string to_line(const Command& command);
std::string to_line(const Event& event);
void write_log(std::ostream& out, const LogHeader& header, const MemoryLog& log);

// Writes the same while the run goes on, a turn of drive() at a time.
class LogWriter final : public EventLog {
 public:
  // `write` gets the text, in order.
  LogWriter(const LogHeader& header, std::function<void(std::string_view)> write);
  void append(const EventBatch& batch) override;
  void append(std::span<const Command> commands) override;

 private:
  std::function<void(std::string_view)> write_;
};

struct ReadLog {
  LogHeader header;
  std::vector<MemoryLog::Entry> entries;
  std::vector<std::int64_t> first_lines;  // of each entry: its events, inputs and commands follow, a line each
};
// Throws ConfigError with file:line for a malformed log. What it says may still be no run's: check_log (log_check.hpp).
// `name` is for messages.
ReadLog read_log(std::istream& in, const std::string& name);

}  // namespace tandem
