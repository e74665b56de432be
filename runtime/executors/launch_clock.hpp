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
  // `records`: launches that come again are recorded, where the device can; else each op is launched afresh.
  explicit LaunchClock(std::shared_ptr<Device> device, bool records = true)
      : device_(std::move(device)), records_(records) {}
  enum class How : std::uint8_t { Afresh, Recorded, Repeated };
  struct Launch {
    double ns = 0;  // of recording too, where it was recorded
    How how = How::Afresh;
  };
  // Those of the compute lane's ops since this was last asked, in their order. Only while nothing is in flight.
  std::vector<Launch> take() { return std::exchange(*launches_, {}); }

  DeviceFacts facts() override { return device_->facts(); }
  Arena device_arena(std::int64_t bytes) override { return device_->device_arena(bytes); }
  Arena pinned_arena(const std::string& name, std::int64_t bytes, std::int64_t pageable_bytes) override {
    return device_->pinned_arena(name, bytes, pageable_bytes);
  }
  std::int64_t far_bytes() const override { return device_->far_bytes(); }
  std::unique_ptr<Streams> open_streams() override {
    return std::make_unique<TimedStreams>(device_->open_streams(), launches_, records_);
  }
  void copy_now(std::byte* target, const std::byte* source, std::int64_t bytes) override {
    device_->copy_now(target, source, bytes);
  }

 private:
  using Launches = std::shared_ptr<std::vector<Launch>>;

  template <class Call>
  static double time_ns(const Call& call) {
    const auto start = std::chrono::steady_clock::now();
    call();
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
  }

  class TimedRecording final : public Recording {
   public:
    TimedRecording(std::unique_ptr<Recording> recording, double recording_ns, Launches launches)
        : recording_(std::move(recording)), first_ns_(recording_ns), launches_(std::move(launches)) {}
    void run() override {
      const bool first = std::exchange(run_, true) == false;
      const double ns = time_ns([this] { recording_->run(); });
      launches_->push_back(first ? Launch{ns + first_ns_, How::Recorded} : Launch{ns, How::Repeated});
    }

   private:
    std::unique_ptr<Recording> recording_;
    double first_ns_;
    bool run_ = false;
    Launches launches_;
  };

  class TimedStreams final : public Streams {
   public:
    TimedStreams(std::unique_ptr<Streams> streams, Launches launches, bool records)
        : streams_(std::move(streams)), launches_(std::move(launches)), records_(records) {}
    void run(LaneIndex lane, const std::function<void()>& enqueue) override {
      const double ns = time_ns([&] { streams_->run(lane, enqueue); });
      if (lane == Engine::Compute) launches_->push_back({ns, How::Afresh});
    }
    std::unique_ptr<Recording> record(LaneIndex lane, const std::function<void()>& enqueue) override {
      if (!records_) return nullptr;
      std::unique_ptr<Recording> recording;
      const double ns = time_ns([&] { recording = streams_->record(lane, enqueue); });
      if (!recording) return nullptr;
      return std::make_unique<TimedRecording>(std::move(recording), ns, launches_);
    }
    bool has(Engine kind) const override { return streams_->has(kind); }
    void bind(const std::function<TimeNs()>& now) override { streams_->bind(now); }
    void copy(LaneIndex lane, std::byte* target, const std::byte* source, std::int64_t bytes,
              std::int64_t least_ns) override {
      streams_->copy(lane, target, source, bytes, least_ns);
    }
    Mark mark(LaneIndex lane) override { return streams_->mark(lane); }
    void wait(LaneIndex lane, Mark mark) override { streams_->wait(lane, mark); }
    bool reached(Mark mark) override { return streams_->reached(mark); }
    TimeNs time_of(Mark mark) override { return streams_->time_of(mark); }
    void drop(Mark mark) override { streams_->drop(mark); }

   private:
    std::unique_ptr<Streams> streams_;
    Launches launches_;
    bool records_;
  };

  std::shared_ptr<Device> device_;
  bool records_;
  Launches launches_ = std::make_shared<std::vector<Launch>>();
};

}  // namespace tandem
