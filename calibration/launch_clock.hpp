// A device that notes how long the thread that launches kernels takes to launch each op's: which their own times on the
// device tell only where they wait for it. Must not know ops.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/executors/device.hpp"

namespace tandem {

class LaunchClock final : public Device {
 public:
  explicit LaunchClock(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  // What the compute lane's ops took since this was last asked, in their order, in ns. Only while nothing is in flight.
  std::vector<double> take() { return std::exchange(*launches_ns_, {}); }

  DeviceFacts facts() override { return device_->facts(); }
  Arena device_arena(std::int64_t bytes) override { return device_->device_arena(bytes); }
  Arena pinned_arena(const std::string& name, std::int64_t bytes) override {
    return device_->pinned_arena(name, bytes);
  }
  std::unique_ptr<Streams> open_streams() override {
    return std::make_unique<TimedStreams>(device_->open_streams(), launches_ns_);
  }
  void copy_now(std::byte* target, const std::byte* source, std::int64_t bytes) override {
    device_->copy_now(target, source, bytes);
  }

 private:
  using Times = std::shared_ptr<std::vector<double>>;

  class TimedStreams final : public Streams {
   public:
    TimedStreams(std::unique_ptr<Streams> streams, Times times)
        : streams_(std::move(streams)), times_(std::move(times)) {}
    void run(Engine engine, const std::function<void()>& enqueue) override {
      const auto start = std::chrono::steady_clock::now();
      streams_->run(engine, enqueue);
      if (engine == Engine::Compute)
        times_->push_back(std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count());
    }
    bool has(Engine engine) const override { return streams_->has(engine); }
    void bind(const std::function<TimeNs()>& now) override { streams_->bind(now); }
    void copy(Engine engine, std::byte* target, const std::byte* source, std::int64_t bytes,
              std::int64_t least_ns) override {
      streams_->copy(engine, target, source, bytes, least_ns);
    }
    Mark mark(Engine engine) override { return streams_->mark(engine); }
    void wait(Engine engine, Mark mark) override { streams_->wait(engine, mark); }
    bool reached(Mark mark) override { return streams_->reached(mark); }
    TimeNs time_of(Mark mark) override { return streams_->time_of(mark); }
    void drop(Mark mark) override { streams_->drop(mark); }

   private:
    std::unique_ptr<Streams> streams_;
    Times times_;
  };

  std::shared_ptr<Device> device_;
  Times launches_ns_ = std::make_shared<std::vector<double>>();
};

}  // namespace tandem
