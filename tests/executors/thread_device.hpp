// A device made of threads, one a stream: what StreamLanes does is tested with it where there is no GPU. Its streams
// work through their queues by themselves, some time after they are handed anything, and may be told to fail.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "core/base/errors.hpp"
#include "runtime/executors/device.hpp"
#include "runtime/executors/failure_text.hpp"

namespace tandem::testing {

class ThreadStreams final : public Streams {
 public:
  // What is recorded, and how often that has run.
  struct Recordings {
    bool possible = true;
    std::atomic<int> made{0}, run{0};
  };
  ThreadStreams(std::atomic<bool>& lost, const std::atomic<bool>& no_marks, std::function<void()> launching,
                Recordings& recordings)
      : lost_(lost), no_marks_(no_marks), launching_(std::move(launching)), recordings_(recordings) {}
  ~ThreadStreams() override {
    for (auto& stream : streams_) {
      if (!stream) continue;
      {
        const std::lock_guard lock(stream->mutex);
        stream->ends = true;  // once its queue is empty
        stream->news.notify_one();
      }
      stream->thread.join();
    }
  }

  bool has(Engine kind) const override {
    constexpr Engine kEngines[] = {Engine::Compute, Engine::H2D, Engine::D2H, Engine::H2DSmall, Engine::D2HSmall};
    return std::find(std::begin(kEngines), std::end(kEngines), kind) != std::end(kEngines);
  }
  void bind(const std::function<TimeNs()>& now) override { now_ = now; }
  void run(LaneIndex lane, const std::function<void()>& enqueue) override {
    if (launching_) launching_();
    push(at(lane), enqueue);
  }
  std::unique_ptr<Recording> record(LaneIndex lane, const std::function<void()>& enqueue) override {
    if (!recordings_.possible) return nullptr;
    ++recordings_.made;
    return std::make_unique<ThreadRecording>([this, &stream = at(lane), enqueue] {
      ++recordings_.run;
      push(stream, enqueue);
    });
  }
  void copy(LaneIndex lane, std::byte* target, const std::byte* source, std::int64_t bytes,
            std::int64_t least_ns) override {
    push(at(lane), [=] {
      const auto start = std::chrono::steady_clock::now();
      std::memcpy(target, source, static_cast<std::size_t>(bytes));
      if (least_ns > 0) std::this_thread::sleep_until(start + std::chrono::nanoseconds(least_ns));
    });
  }
  Mark mark(LaneIndex lane) override {
    if (no_marks_) throw DeviceError("the device has no marks");
    if (unused_.empty()) {
      unused_.push_back(static_cast<Mark>(points_.size()));
      points_.emplace_back();
    }
    const Mark mark = unused_.back();
    unused_.pop_back();
    auto point = std::make_shared<Point>();
    points_[static_cast<std::size_t>(mark)] = point;
    push(at(lane), [this, point] { reach(*point); });
    return mark;
  }
  void wait(LaneIndex lane, Mark mark) override {
    push(at(lane), [point = points_[static_cast<std::size_t>(mark)]] {
      std::unique_lock lock(point->mutex);
      point->news.wait(lock, [&] { return point->reached; });
    });
  }
  bool reached(Mark mark) override {
    if (lost_)
      throw DeviceError("the device fell off the bus" + (out_of_memory_ ? ": " + std::string(kOutOfMemory) : ""));
    Point& point = *points_[static_cast<std::size_t>(mark)];
    const std::lock_guard lock(point.mutex);
    return point.reached;
  }
  TimeNs time_of(Mark mark) override {
    Point& point = *points_[static_cast<std::size_t>(mark)];
    const std::lock_guard lock(point.mutex);
    return point.at;
  }
  void drop(Mark mark) override {
    points_[static_cast<std::size_t>(mark)].reset();
    unused_.push_back(mark);
  }

 private:
  struct Point {
    std::mutex mutex;
    std::condition_variable news;
    bool reached = false;
    TimeNs at;
  };
  class ThreadRecording final : public Recording {
   public:
    explicit ThreadRecording(std::function<void()> run) : run_(std::move(run)) {}
    void run() override { run_(); }

   private:
    std::function<void()> run_;
  };
  struct Stream {
    std::mutex mutex;
    std::condition_variable news;
    std::deque<std::function<void()>> queue;
    bool ends = false;
    std::thread thread;
  };

  Stream& at(LaneIndex lane) {
    auto& stream = streams_[lane.place()];
    if (!stream) {
      stream = std::make_unique<Stream>();
      stream->thread = std::thread([this, s = stream.get()] { work(*s); });
    }
    return *stream;
  }
  static void push(Stream& stream, std::function<void()> work) {
    const std::lock_guard lock(stream.mutex);
    stream.queue.push_back(std::move(work));
    stream.news.notify_one();
  }
  // Work that throws is a kernel that went wrong: the device is lost, as after a GPU's sticky error.
  void work(Stream& stream) {
    for (;;) {
      std::unique_lock lock(stream.mutex);
      stream.news.wait(lock, [&] { return !stream.queue.empty() || stream.ends; });
      if (stream.queue.empty()) return;
      const auto next = std::move(stream.queue.front());
      stream.queue.pop_front();
      lock.unlock();
      try {
        next();
      } catch (const std::bad_alloc&) {
        out_of_memory_ = true;
        lost_ = true;
      } catch (...) {
        lost_ = true;
      }
    }
  }
  void reach(Point& point) {
    const std::lock_guard lock(point.mutex);
    point.reached = true;
    point.at = now_();
    point.news.notify_all();
  }

  std::atomic<bool>& lost_;
  std::atomic<bool> out_of_memory_{false};  // why it was lost
  const std::atomic<bool>& no_marks_;
  std::function<void()> launching_;
  Recordings& recordings_;
  std::function<TimeNs()> now_;
  std::array<std::unique_ptr<Stream>, kLaneCount> streams_;
  std::vector<std::shared_ptr<Point>> points_;  // by mark
  std::vector<Mark> unused_;
};

class ThreadDevice final : public Device {
 public:
  DeviceFacts facts() override { return {"device of threads", "", 0, 0, std::int64_t{1} << 30}; }
  Arena device_arena(std::int64_t bytes) override {
    if (bytes > most_bytes) throw DeviceError("the device has no " + std::to_string(bytes) + " bytes");
    return {"device", bytes, false};
  }
  Arena pinned_arena(const std::string& name, std::int64_t bytes, std::int64_t /*pageable_bytes*/) override {
    const auto memory = std::make_shared<Arena>(name, bytes, false);
    pinned_bytes += bytes;
    return {name, memory->at(0, bytes), bytes, [this, memory](std::byte*) { pinned_bytes -= memory->size_bytes(); }};
  }
  std::unique_ptr<Streams> open_streams() override {
    return std::make_unique<ThreadStreams>(lost, no_marks, launching, recordings);
  }
  void copy_now(std::byte* target, const std::byte* source, std::int64_t bytes) override {
    std::memcpy(target, source, static_cast<std::size_t>(bytes));
  }

  std::int64_t pinned_bytes = 0;
  std::int64_t most_bytes = std::numeric_limits<std::int64_t>::max();  // of an arena
  ThreadStreams::Recordings recordings;
  std::function<void()> launching;  // called by the thread that launches kernels, each time it does
  std::atomic<bool> lost{false};    // true: the next question fails, as after a sticky error
  std::atomic<bool> no_marks{false};
};

}  // namespace tandem::testing
