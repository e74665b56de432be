// The lanes that are streams of a device: one thread hands commands to them, ahead of time, and reports what is done.
// A command is handed over once all that it waits for has been handed to a stream too, or, where that runs on a worker,
// is done. Must not know what a command does, nor which device it is.
#pragma once

#include <array>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "runtime/executors/device.hpp"
#include "runtime/executors/lane_workers.hpp"

namespace tandem {

struct StreamTask {
  CommandId id = kNoCommand;
  LaneIndex lane;
  WaitFor wait_for;
  std::function<void(Streams&)> enqueue;
  std::function<std::int64_t()> result;  // Event::result, asked for once the work is done
};

class StreamLanes {
 public:
  // Keeps its commands' states in `workers`, which outlives it.
  StreamLanes(Rank rank, std::unique_ptr<Streams> streams, LaneWorkers& workers);
  // Waits for what the device has been handed; drops the rest.
  ~StreamLanes();
  StreamLanes(const StreamLanes&) = delete;
  StreamLanes& operator=(const StreamLanes&) = delete;

  bool takes(Engine kind) const { return streams_->has(kind); }
  // Ids grow, and are known to the workers (Task::elsewhere).
  void add(std::vector<StreamTask> tasks);

 private:
  struct Running {
    CommandId id;
    WaitFor wait_for;
    Streams::Mark started, finished;
    std::function<std::int64_t()> result;
  };
  struct LaneState {
    std::deque<StreamTask> waiting;
    std::deque<Running> running;
    bool broken = false;  // a command failed or was cancelled: all later ones are cancelled
  };

  void serve();
  bool take_incoming();
  bool hand_over();
  bool hand_over_head(LaneIndex index, LaneState& lane);
  void enqueue(LaneIndex index, LaneState& lane, StreamTask& task);
  bool retire();
  bool done(const Running& command) const;
  void report_done(LaneState& lane);
  void settle(CommandId id, Outcome outcome, std::string error) noexcept;
  void lose_device(std::string error) noexcept;
  bool idle() const;

  const Rank rank_;
  const std::unique_ptr<Streams> streams_;
  LaneWorkers& workers_;

  // The thread's own.
  std::array<LaneState, kLaneCount> lanes_;
  std::unordered_map<CommandId, Streams::Mark> finish_marks_;  // of running commands
  std::string lost_;                                           // why the device answers no more

  std::mutex mutex_;  // guards the three below
  std::condition_variable wake_;
  std::vector<StreamTask> incoming_;
  bool news_ = false, stopping_ = false;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace tandem
