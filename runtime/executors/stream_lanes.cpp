#include "runtime/executors/stream_lanes.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/base/check.hpp"
#include "runtime/executors/failure_text.hpp"
#include "runtime/executors/start_thread.hpp"

namespace tandem {
namespace {

// Commands of one lane that the device has and has not finished. Enough that it never waits for the host; few enough
// that its launch queue (about a thousand kernels) never fills and blocks the thread.
constexpr std::size_t kRunAhead = 16;
// How often completions are looked for while the device works: well under a layer's time.
constexpr std::chrono::microseconds kPoll{10};

}  // namespace

StreamLanes::StreamLanes(Rank rank, std::unique_ptr<Streams> streams, LaneWorkers& workers)
    : rank_(rank), streams_(std::move(streams)), workers_(workers) {
  workers_.on_settled([this] {
    const std::lock_guard lock(mutex_);
    news_ = true;
    wake_.notify_one();
  });
  thread_ = start_thread("the device's lanes", [this] { serve(); });
}

StreamLanes::~StreamLanes() {
  workers_.on_settled(nullptr);
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_one();
  }
  thread_.join();
}

void StreamLanes::add(std::vector<StreamTask> tasks) {
  if (tasks.empty()) return;
  const std::lock_guard lock(mutex_);
  for (StreamTask& task : tasks) incoming_.push_back(std::move(task));
  wake_.notify_one();
}

bool StreamLanes::idle() const {
  for (const LaneState& lane : lanes_)
    if (!lane.running.empty()) return false;
  return true;
}

void StreamLanes::serve() {
  try {
    streams_->bind([this] { return workers_.now(); });
  } catch (...) {
    lost_ = failure_text();
  }
  for (;;) {
    bool moved = take_incoming();
    try {
      moved |= retire();
      moved |= hand_over();
    } catch (...) {
      lose_device(failure_text());
    }
    if (moved) continue;
    std::unique_lock lock(mutex_);
    if (stopping_ && idle()) return;
    const auto anything = [this] { return news_ || !incoming_.empty() || stopping_; };
    if (idle())
      wake_.wait(lock, anything);
    else
      wake_.wait_for(lock, kPoll, [this] { return news_ || !incoming_.empty(); });
    news_ = false;
  }
}

bool StreamLanes::take_incoming() {
  std::vector<StreamTask> tasks;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) {
      for (LaneState& lane : lanes_) lane.waiting.clear();
      incoming_.clear();
    }
    tasks.swap(incoming_);
  }
  for (StreamTask& task : tasks) {
    const CommandId id = task.id;
    LaneState& lane = lanes_[task.lane.place()];
    try {
      if (lost_.empty()) lane.waiting.push_back(std::move(task));
    } catch (...) {
      lose_device(failure_text());
    }
    if (!lost_.empty()) settle(id, Outcome::Failed, copy_or_less(lost_));
  }
  return !tasks.empty();
}

// One command of each lane: to launch an op's kernels may take longer than to run them, and what has finished meanwhile
// is reported before the next one's turn comes. The scheduler then hands in more while there is still something to
// launch.
bool StreamLanes::hand_over() {
  bool moved = false;
  for (std::size_t place = 0; place < lanes_.size(); ++place)
    moved |= hand_over_head(LaneIndex::at(place), lanes_[place]);
  return moved;
}

// True if the lane's first waiting command was handed over, or cancelled.
bool StreamLanes::hand_over_head(LaneIndex index, LaneState& lane) {
  if (lane.waiting.empty() || lane.running.size() >= kRunAhead) return false;
  StreamTask& task = lane.waiting.front();
  bool broken = lane.broken;
  for (CommandId id : task.wait_for) {
    if (finish_marks_.count(id) > 0) continue;
    const LaneWorkers::State state = workers_.state_of(id);
    if (state == LaneWorkers::State::Pending) return false;
    broken |= state == LaneWorkers::State::Broken;
  }
  if (broken) {
    lane.broken = true;
    settle(task.id, Outcome::Cancelled, "");
  } else {
    enqueue(index, lane, task);
  }
  lane.waiting.pop_front();
  return true;
}

void StreamLanes::enqueue(LaneIndex index, LaneState& lane, StreamTask& task) {
  for (CommandId id : task.wait_for)
    if (const auto mark = finish_marks_.find(id); mark != finish_marks_.end()) streams_->wait(index, mark->second);
  const Streams::Mark started = streams_->mark(index);
  try {
    task.enqueue(*streams_);
  } catch (...) {
    lane.broken = true;
    settle(task.id, Outcome::Failed, failure_text());
    return;
  }
  const Streams::Mark finished = streams_->mark(index);
  finish_marks_[task.id] = finished;
  lane.running.push_back({task.id, std::move(task.wait_for), started, finished, std::move(task.result)});
}

// Reports what has finished since. True if anything has.
bool StreamLanes::retire() {
  bool any = false;
  for (LaneState& lane : lanes_)
    for (; !lane.running.empty() && done(lane.running.front()); any = true) report_done(lane);
  return any;
}

// Streams are asked one after the other: what a command waited for is finished, too, but may not be reported yet.
bool StreamLanes::done(const Running& command) const {
  return streams_->reached(command.finished) &&
         std::none_of(command.wait_for.begin(), command.wait_for.end(),
                      [this](CommandId id) { return finish_marks_.count(id) > 0; });
}

void StreamLanes::report_done(LaneState& lane) {
  const Running& done = lane.running.front();
  Event event;
  event.rank = rank_;
  event.command = done.id;
  try {
    event.result = done.result ? done.result() : 0;
  } catch (...) {  // the result is one that the run must not go on with
    event.outcome = Outcome::Failed;
    event.error = failure_text();
    lane.broken = true;
  }
  event.started = streams_->time_of(done.started);
  event.finished = streams_->time_of(done.finished);
  streams_->drop(done.started);
  streams_->drop(done.finished);
  finish_marks_.erase(done.id);
  lane.running.pop_front();
  workers_.report(std::move(event));
}

void StreamLanes::settle(CommandId id, Outcome outcome, std::string error) noexcept {
  Event event;
  event.rank = rank_;
  event.command = id;
  event.outcome = outcome;
  event.error = std::move(error);
  event.started = event.finished = workers_.now();
  workers_.report(std::move(event));
}

// All that the device has is gone, and so is all that waits for it. All of it fails: one of the two may be none, and a
// run in which nothing has failed would wait for what is to come.
void StreamLanes::lose_device(std::string error) noexcept {
  lost_ = std::move(error);
  for (LaneState& lane : lanes_) {
    for (const Running& running : lane.running) settle(running.id, Outcome::Failed, copy_or_less(lost_));
    for (const StreamTask& task : lane.waiting) settle(task.id, Outcome::Failed, copy_or_less(lost_));
    lane.running.clear();
    lane.waiting.clear();
    lane.broken = true;
  }
  finish_marks_.clear();
}

}  // namespace tandem
