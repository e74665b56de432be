#include "runtime/executors/lane_workers.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "core/base/check.hpp"
#include "runtime/executors/failure_text.hpp"
#include "runtime/executors/start_thread.hpp"

namespace tandem {
namespace {

// A signal handler can only set a flag, so wait() looks at it this often.
constexpr std::chrono::milliseconds kInterruptPoll{20};

}  // namespace

LaneWorkers::LaneWorkers(Rank rank, std::function<void(LaneIndex)> prepare_thread, std::atomic<bool>* interrupt,
                         std::int32_t cores)
    : rank_(rank),
      prepare_thread_(std::move(prepare_thread)),
      cores_(cores),
      interrupt_(interrupt != nullptr ? interrupt : &own_interrupt_) {}

LaneWorkers::~LaneWorkers() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (auto& lane : lanes_)
      if (lane) lane->wake.notify_all();
  }
  for (auto& lane : lanes_)
    if (lane) lane->thread.join();
}

TimeNs LaneWorkers::now() const {
  return {std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start_).count()};
}

LaneWorkers::LaneState& LaneWorkers::lane(LaneIndex index) {
  auto& slot = lanes_[index.place()];
  if (!slot) {
    auto fresh = std::make_unique<LaneState>();
    fresh->thread = start_thread("a lane", [this, index, state = fresh.get()] { serve(index, *state); });
    slot = std::move(fresh);  // a lane has its thread, or there is none
  }
  return *slot;
}

void LaneWorkers::add(std::vector<Task> tasks) {
  const std::lock_guard lock(mutex_);
  make_room_for_events(tasks.size());
  for (Task& task : tasks) {
    CHECK(task.id >= next_id(), "command ids must grow:", task.id, next_id());
    for (CommandId id : task.wait_for)
      CHECK(id >= 0 && id < task.id && id < next_id() && state(id) != State::Unknown, "command", task.id, "waits for",
            id, "which was never submitted");
    states_.resize(static_cast<std::size_t>(task.id - first_state_) + 1, State::Unknown);
    set(task.id, State::Pending);
    ++added_;
    most_allowance_ = std::max(most_allowance_, task.allowance);
    if (task.elsewhere) {
      elsewhere_.emplace(task.id, std::move(task));
      continue;
    }
    LaneState& target = lane(task.lane);
    target.queue.push_back(std::move(task));
    if (target.queue.size() == 1) target.wake.notify_one();
  }
}

void LaneWorkers::make_room_for_events(std::size_t more) {
  const std::size_t needed = static_cast<std::size_t>(added_ - delivered_) + more;
  if (needed > events_.capacity()) events_.reserve(std::max(needed, 2 * events_.capacity()));
}

void LaneWorkers::when_done(const WaitFor& wait_for, std::function<void()> action) {
  const std::lock_guard lock(mutex_);
  notes_.push_back({wait_for, std::move(action)});
  settle_notes();
}

// Under mutex_, as are all below but run().
CommandId LaneWorkers::first_pending(const WaitFor& ids) const {
  for (CommandId id : ids)
    if (state(id) == State::Pending) return id;
  return kNoCommand;
}

void LaneWorkers::settle_notes() {
  std::erase_if(notes_, [this](const Note& note) {
    if (first_pending(note.wait_for) != kNoCommand) return false;
    note.action();
    return true;
  });
}

bool LaneWorkers::must_cancel(const LaneState& lane, const Task& task) const {
  return lane.broken || std::any_of(task.wait_for.begin(), task.wait_for.end(),
                                    [this](CommandId id) { return state(id) == State::Broken; });
}

bool LaneWorkers::head_ready(LaneState& lane) {
  lane.blocked_on = kNoCommand;
  lane.wants_cores = false;
  if (lane.queue.empty()) return false;
  const Task& head = lane.queue.front();
  lane.blocked_on = first_pending(head.wait_for);
  if (lane.blocked_on != kNoCommand) return false;
  lane.wants_cores = !must_cancel(lane, head) && !may_claim(head);
  return !lane.wants_cores;
}

// Whoever came first is first, so that none waits for ever: no matter whose thread looks first.
bool LaneWorkers::may_claim(const Task& task) const {
  const std::int32_t wanted = std::min(task.cores, cores_);
  if (wanted == 0) return true;
  if (claimed_cores_ + wanted > cores_) return false;
  return std::none_of(lanes_.begin(), lanes_.end(), [&](const std::unique_ptr<LaneState>& other) {
    if (!other || other->running || other->queue.empty()) return false;
    const Task& head = other->queue.front();
    return head.id < task.id && std::min(head.cores, cores_) > 0 && first_pending(head.wait_for) == kNoCommand &&
           !must_cancel(*other, head);
  });
}

// Those that want cores look again whether it is their turn.
void LaneWorkers::wake_for_cores() {
  for (auto& lane : lanes_)
    if (lane && lane->wants_cores) lane->wake.notify_one();
}

Event LaneWorkers::event_of(const Task& task, Outcome outcome) const {
  Event event;
  event.rank = rank_;
  event.command = task.id;
  event.outcome = outcome;
  event.started = event.finished = now();
  return event;
}

void LaneWorkers::serve(LaneIndex index, LaneState& lane) {
  std::string unprepared;  // why
  try {
    prepare_thread_(index);
  } catch (...) {
    unprepared = failure_text();
  }
  std::unique_lock lock(mutex_);
  for (;;) {
    lane.wake.wait(lock, [&] { return stopping_ || head_ready(lane); });
    if (stopping_) return;
    Task task = std::move(lane.queue.front());
    lane.queue.pop_front();
    const auto work = std::move(task.work);
    Event event = event_of(task, Outcome::Cancelled);
    if (must_cancel(lane, task)) {
      // No part of it is done.
    } else if (!unprepared.empty()) {
      event.outcome = Outcome::Failed;
      event.error = std::exchange(unprepared, {});
    } else {
      const std::int32_t cores = std::min(task.cores, cores_);
      claimed_cores_ += cores;
      lane.running = std::move(task);
      wake_for_cores();  // of two that fit, the second
      lock.unlock();
      run(work, event);
      lock.lock();
      lane.running.reset();
      claimed_cores_ -= cores;
    }
    lane.broken = lane.broken || event.outcome != Outcome::Finished;
    complete(std::move(event));
    if (settled_) settled_();
  }
}

LaneWorkers::State LaneWorkers::state_of(CommandId id) const {
  const std::lock_guard lock(mutex_);
  return state(id);
}

void LaneWorkers::report(Event event) {
  const std::lock_guard lock(mutex_);
  CHECK(state(event.command) == State::Pending, "command", event.command, "is reported twice");
  elsewhere_.erase(event.command);
  complete(std::move(event));
}

void LaneWorkers::on_settled(std::function<void()> settled) {
  const std::lock_guard lock(mutex_);
  settled_ = std::move(settled);
}

void LaneWorkers::run(const std::function<std::int64_t()>& work, Event& event) const noexcept {
  event.started = now();
  try {
    event.result = work();
    event.outcome = Outcome::Finished;
  } catch (...) {
    event.outcome = Outcome::Failed;
    event.error = failure_text();
  }
  event.finished = now();
}

void LaneWorkers::complete(Event event) noexcept {
  const CommandId id = event.command;
  progress_ = std::chrono::steady_clock::now();
  set(id, event.outcome == Outcome::Finished ? State::Done : State::Broken);
  for (; !states_.empty() && (states_.front() == State::Done || states_.front() == State::Unknown); ++first_state_)
    states_.pop_front();
  events_.push_back(std::move(event));
  settle_notes();
  for (auto& other : lanes_)
    if (other && other->blocked_on == id) other->wake.notify_one();
  wake_for_cores();
  news_.notify_one();
}

EventBatch LaneWorkers::wait(TimeNs deadline) {
  std::unique_lock lock(mutex_);
  CHECK(deadline != kNever || delivered_ != added_, "wait() with nothing in flight would never end");
  while (events_.empty() && !*interrupt_ && now() < deadline) {
    const auto left = std::chrono::nanoseconds(deadline.ns - now().ns);
    news_.wait_for(lock, std::min<std::chrono::nanoseconds>(left, kInterruptPoll));
  }
  EventBatch batch;
  batch.events.assign(std::make_move_iterator(events_.begin()), std::make_move_iterator(events_.end()));
  events_.clear();
  delivered_ += static_cast<std::int64_t>(batch.events.size());
  if (interrupt_->exchange(false)) batch.inputs.emplace_back(Interrupt{});
  batch.observed = now();
  return batch;
}

bool LaneWorkers::in_flight() const {
  const std::lock_guard lock(mutex_);
  return delivered_ != added_;
}

}  // namespace tandem
