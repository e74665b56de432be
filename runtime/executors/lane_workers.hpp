// One worker thread a lane: tasks run in the order they were added, each when all tasks that it waits for are done.
// Must not know what a task does, nor arenas, graphs or LibTorch.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/scheduler/seam.hpp"
#include "runtime/executors/standstill.hpp"

namespace tandem {

// The work of one command. `work` returns Event::result and throws on failure.
struct Task {
  CommandId id = kNoCommand;
  LaneIndex lane;
  WaitFor wait_for;
  std::function<std::int64_t()> work;
  std::int32_t cores = 0;  // that it claims while it runs
  bool elsewhere = false;  // something else runs it and report()s its event: only its state is kept here
  // For a watchdog: what it does, what it may take on a very slow machine, and whether an interrupt waits for it.
  // Words are made where somebody asks: almost always nobody does. While the command is under way, from any thread.
  std::function<std::string()> what;
  std::chrono::nanoseconds allowance{};
  bool saves = false;
};

// Called from one thread, but for request_interrupt(). After a task fails or is cancelled, all later tasks of its lane
// are cancelled (they may depend on it: a lane's order is part of what `wait_for` leaves unsaid), and all that wait for
// them.
class LaneWorkers {
 public:
  // Tasks that run claim at most `cores` together; 0: as many as they like. `prepare_thread` runs first in each worker;
  // where it throws, so does the lane's first task. Workers start with the first task of their lane. `interrupt`, if
  // given, outlives this object and may be set by anyone at any time, as request_interrupt() does.
  LaneWorkers(Rank rank, std::function<void(LaneIndex)> prepare_thread, std::atomic<bool>* interrupt = nullptr,
              std::int32_t cores = 0);
  // Waits for tasks that run; drops those that have not started.
  ~LaneWorkers();
  LaneWorkers(const LaneWorkers&) = delete;
  LaneWorkers& operator=(const LaneWorkers&) = delete;

  // Ids grow, and a task waits only for ids added before it. Throws DeviceError where a worker cannot be started: then
  // nothing more may be added.
  void add(std::vector<Task> tasks);
  // Calls `action`, which must be short, as soon as all of `wait_for` are done, before any task sees the last of them
  // done.
  void when_done(const WaitFor& wait_for, std::function<void()> action);
  EventBatch wait(TimeNs deadline);
  bool in_flight() const;
  TimeNs now() const;
  // What has not ended; none where nothing is in flight that has to. May be called from any thread.
  std::optional<Standstill> standstill() const;

  // For commands that run elsewhere. `settled`, which must be short, is called after each command that a worker has
  // settled.
  enum class State : std::uint8_t { Unknown, Pending, Done, Broken };
  State state_of(CommandId id) const;
  void report(Event event);
  void on_settled(std::function<void()> settled);
  // May be called from a signal handler: the next wait() returns an Interrupt.
  void request_interrupt() { *interrupt_ = true; }

 private:
  struct LaneState {
    std::deque<Task> queue;
    std::condition_variable wake;
    std::optional<Task> running;        // without its work
    CommandId blocked_on = kNoCommand;  // what the head waits for
    bool wants_cores = false;           // the head waits for its turn at them
    bool broken = false;                // a task failed or was cancelled
    std::thread thread;
  };
  struct Note {
    WaitFor wait_for;
    std::function<void()> action;
  };

  LaneState& lane(LaneIndex lane);
  void serve(LaneIndex index, LaneState& lane);
  Event event_of(const Task& task, Outcome outcome) const;
  bool head_ready(LaneState& lane);
  bool may_claim(const Task& task) const;
  void wake_for_cores();
  bool must_cancel(const LaneState& lane, const Task& task) const;
  void run(const std::function<std::int64_t()>& work, Event& event) const noexcept;
  void make_room_for_events(std::size_t more);
  void complete(Event event) noexcept;
  void settle_notes();
  CommandId first_pending(const WaitFor& ids) const;
  LaneWait wait_of(const Task& task, bool runs) const;
  std::string description_of(CommandId id) const;
  std::chrono::nanoseconds allowance_of(const Task& task) const;
  void set(CommandId id, State state) { states_[static_cast<std::size_t>(id - first_state_)] = state; }
  State state(CommandId id) const {
    return id < first_state_ ? State::Done : states_[static_cast<std::size_t>(id - first_state_)];
  }
  // Of commands so far, those that are forgotten included.
  CommandId next_id() const { return first_state_ + static_cast<CommandId>(states_.size()); }

  const Rank rank_;
  const std::function<void(LaneIndex)> prepare_thread_;
  const std::int32_t cores_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::atomic<bool> own_interrupt_{false};
  std::atomic<bool>* const interrupt_;
  static_assert(std::atomic<bool>::is_always_lock_free, "set from a signal handler");

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable news_;
  std::deque<State> states_;  // by command id, from first_state_ on: all before it are done, or have no event
  CommandId first_state_ = 0;
  std::array<std::unique_ptr<LaneState>, kLaneCount> lanes_;
  std::int32_t claimed_cores_ = 0;
  std::map<CommandId, Task> elsewhere_;  // that have not been reported
  std::chrono::nanoseconds most_allowance_{};
  std::chrono::steady_clock::time_point progress_ = start_;  // when the last command ended, or the first came
  std::vector<Note> notes_;
  std::vector<Event> events_;  // with room for all in flight: a worker that has done its work needs no memory to say so
  std::function<void()> settled_;
  std::int64_t delivered_ = 0;  // of `added_`, events handed out
  std::int64_t added_ = 0;
  bool stopping_ = false;
};

}  // namespace tandem
