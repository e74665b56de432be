// A device, and its streams, of which any call may fail, hang or be late. Must not know which device it is.
#pragma once

#include <memory>
#include <utility>

#include "runtime/executors/device.hpp"
#include "tests/faults/faults.hpp"

namespace tandem::testing {

class FaultyStreams final : public Streams {
 public:
  FaultyStreams(std::unique_ptr<Streams> streams, Faults& faults) : streams_(std::move(streams)), faults_(faults) {}

  bool has(Engine kind) const override { return streams_->has(kind); }
  void bind(const std::function<TimeNs()>& now) override { streams_->bind(now); }
  void run(LaneIndex lane, const std::function<void()>& enqueue) override {
    faults_.pass(Site::Launch);
    streams_->run(lane, enqueue);
  }
  std::unique_ptr<Recording> record(LaneIndex lane, const std::function<void()>& enqueue) override {
    return streams_->record(lane, enqueue);
  }
  void copy(LaneIndex lane, std::byte* target, const std::byte* source, std::int64_t bytes,
            std::int64_t least_ns) override {
    faults_.pass(Site::Copy);
    streams_->copy(lane, target, source, bytes, least_ns);
  }
  Mark mark(LaneIndex lane) override {
    faults_.pass(Site::Mark);
    return streams_->mark(lane);
  }
  void wait(LaneIndex lane, Mark mark) override { streams_->wait(lane, mark); }
  bool reached(Mark mark) override {
    faults_.pass(Site::Reached);
    return streams_->reached(mark);
  }
  TimeNs time_of(Mark mark) override { return streams_->time_of(mark); }
  void drop(Mark mark) override { streams_->drop(mark); }

 private:
  std::unique_ptr<Streams> streams_;
  Faults& faults_;
};

class FaultyDevice final : public Device {
 public:
  FaultyDevice(std::shared_ptr<Device> device, Faults& faults) : device_(std::move(device)), faults_(faults) {}

  DeviceFacts facts() override { return device_->facts(); }
  Arena device_arena(std::int64_t bytes) override {
    faults_.pass(Site::DeviceMemory);
    return device_->device_arena(bytes);
  }
  Arena pinned_arena(const std::string& name, std::int64_t bytes, std::int64_t pageable_bytes) override {
    faults_.pass(Site::PinnedMemory);
    return device_->pinned_arena(name, bytes, pageable_bytes);
  }
  std::int64_t far_bytes() const override { return device_->far_bytes(); }
  std::unique_ptr<Streams> open_streams() override {
    faults_.pass(Site::Streams);
    return std::make_unique<FaultyStreams>(device_->open_streams(), faults_);
  }
  void copy_now(std::byte* target, const std::byte* source, std::int64_t bytes) override {
    device_->copy_now(target, source, bytes);
  }

 private:
  std::shared_ptr<Device> device_;
  Faults& faults_;
};

}  // namespace tandem::testing
