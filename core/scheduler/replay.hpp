// Replays a log: feeds its batches to the same scheduler and compares the commands that come back, byte for byte.
// Needs no world: a run on a GPU is debugged on a laptop.
#pragma once

#include <string>
#include <vector>

#include "core/scheduler/event_log.hpp"
#include "core/scheduler/scheduler.hpp"

namespace tandem {

// Plays recorded batches in order, whatever is submitted.
class ReplayExecutor final : public Executor {
 public:
  explicit ReplayExecutor(const std::vector<MemoryLog::Entry>& entries) : entries_(&entries) {}
  void submit(std::span<const Command>) override {}
  EventBatch wait(TimeNs deadline) override;
  bool in_flight() const override { return next_ < entries_->size(); }

 private:
  const std::vector<MemoryLog::Entry>* entries_;
  std::size_t next_ = 1;  // the first entry holds the commands that answered the empty batch at the start
};

struct ReplayReport {
  std::int64_t commands = 0;  // compared and equal
  std::string difference;     // "" if all are equal, else the first difference: where, recorded, replayed
};

// `ranks`: fresh schedulers made from the log's own scenario, one a rank that the log holds.
ReplayReport replay(const ReadLog& log, std::span<Scheduler* const> ranks);

}  // namespace tandem
