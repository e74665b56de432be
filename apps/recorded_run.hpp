// A recorded log made whole again: its scenario, and graphs from schedulers that were driven through it, so that
// reports and checks can read it like a run that has just ended. Must not know flags or worlds.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "analysis/record.hpp"
#include "core/scheduler/replay.hpp"

namespace tandem {

class RecordedRun {
 public:
  // Throws ConfigError for a log that cannot be read, or whose scenario this build does not know.
  // `shown_as`: what reports call the scenario; the log holds its text only.
  explicit RecordedRun(const std::string& path, const std::string& shown_as = "");

  // What the replay found: the same commands, or the first difference.
  const ReplayReport& replayed() const { return report_; }
  const LogHeader& header() const { return log_.header; }
  // Points into this object. Throws ConfigError if the log did not replay.
  RunRecord record() const;

 private:
  void make_schedulers();

  std::string path_;
  ReadLog log_;
  Scenario scenario_;
  std::vector<std::unique_ptr<CostModel>> estimates_;
  std::vector<std::unique_ptr<Scheduler>> schedulers_;
  MemoryLog memory_;
  ReplayReport report_;
};

}  // namespace tandem
