#include "core/scheduler/replay.hpp"

#include "core/base/check.hpp"
#include "core/scheduler/driver.hpp"

namespace tandem {
namespace {

// Compares commands with the recorded ones as they are emitted; throws at the first difference to end the run.
class Comparer final : public EventLog {
 public:
  struct Difference {};
  Comparer(const ReadLog& log, ReplayReport& report) : log_(log), report_(report) {}

  void append(const EventBatch&) override {}
  void append(std::span<const Command> commands) override {
    CHECK(turn_ < log_.entries.size(), turn_, log_.entries.size());
    const auto& recorded = log_.entries[turn_].commands;
    for (std::size_t i = 0; i < std::max(recorded.size(), commands.size()); ++i) {
      const std::string was = i < recorded.size() ? to_line(recorded[i]) : "(no command)";
      const std::string is = i < commands.size() ? to_line(commands[i]) : "(no command)";
      if (was != is) {
        report_.difference = "turn " + std::to_string(turn_) + ", command " + std::to_string(i) + ": recorded '" + was +
                             "', replayed '" + is + "'";
        throw Difference{};
      }
      ++report_.commands;
    }
    ++turn_;
    // A log that was cut short (a killed process) is compared as far as it goes.
    if (turn_ == log_.entries.size()) throw Difference{};
  }
  std::size_t turns() const { return turn_; }

 private:
  const ReadLog& log_;
  ReplayReport& report_;
  std::size_t turn_ = 0;
};

}  // namespace

EventBatch ReplayExecutor::wait(TimeNs) {
  CHECK(next_ < entries_->size(), "the log ends before the run does");
  return (*entries_)[next_++].batch;
}

ReplayReport replay(const ReadLog& log, std::span<Scheduler* const> ranks) {
  ReplayReport report;
  if (log.entries.empty()) {
    report.difference = "the log holds no batch";
    return report;
  }
  ReplayExecutor executor(log.entries);
  Comparer comparer(log, report);
  try {
    drive(ranks, executor, comparer);
    if (executor.in_flight())
      report.difference = "the run ends with turn " + std::to_string(comparer.turns() - 1) + " of the " +
                          std::to_string(log.entries.size()) + " that the log holds";
  } catch (const Comparer::Difference&) {
  }
  return report;
}

}  // namespace tandem
