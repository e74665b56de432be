// One CUDA stream a lane of the device, a second one of a kind made when it is first used; marks are CUDA events with
// times. Must not know commands or bodies.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/executors/device.hpp"

namespace tandem {

class CudaStreams final : public Streams {
 public:
  // `among_ranks`: lanes of what ranks do together, too.
  explicit CudaStreams(bool among_ranks = false) : among_ranks_(among_ranks) {}
  ~CudaStreams() override;
  bool has(Engine kind) const override;
  void bind(const std::function<TimeNs()>& now) override;
  void run(LaneIndex lane, const std::function<void()>& enqueue) override;
  std::unique_ptr<Recording> record(LaneIndex lane, const std::function<void()>& enqueue) override;
  void copy(LaneIndex lane, std::byte* target, const std::byte* source, std::int64_t bytes,
            std::int64_t least_ns) override;
  Mark mark(LaneIndex lane) override;
  void wait(LaneIndex lane, Mark mark) override;
  bool reached(Mark mark) override;
  TimeNs time_of(Mark mark) override;
  void drop(Mark mark) override { unused_.push_back(mark); }

 private:
  cudaStream_t stream(LaneIndex lane);
  cudaEvent_t& event(Mark mark) { return events_[static_cast<std::size_t>(mark)]; }
  void warm_up(LaneIndex lane);
  std::int64_t* held_since(LaneIndex lane);
  void set_anchor(const std::function<TimeNs()>& now);

  const bool among_ranks_;
  std::array<cudaStream_t, kLaneCount> streams_{};
  std::int64_t* held_since_ = nullptr;  // on the device, by lane: when its stream came to the copy that holds it
  std::vector<cudaEvent_t> events_;     // by mark
  std::vector<Mark> unused_;
  // Times are differences from this event, in floats of milliseconds: it moves along, so that they stay short.
  cudaEvent_t anchor_ = nullptr;
  std::int64_t anchor_ns_ = 0;
};

}  // namespace tandem
