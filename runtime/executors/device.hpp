// A device that runs its lanes by itself, as a GPU does: memory of its own, and queues that work through copies and
// kernels while the host goes on. Without one, worker threads stand in for it. Must not know commands or graphs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/base/rank_group.hpp"
#include "core/scheduler/seam.hpp"
#include "runtime/executors/arena.hpp"

namespace tandem {

class Collective;

// What was launched once, to be launched again as a whole: the same kernels on the same bytes.
class Recording {
 public:
  virtual ~Recording() = default;
  // Only enqueues, in the queue of which it was recorded and which still lives.
  virtual void run() = 0;
};

// In-order queues, one a lane of the device. Called from one thread, which calls bind() first. All but reached()
// and time_of() only enqueue. Throws DeviceError; after one, the device may be lost for good.
class Streams {
 public:
  using Mark = std::int32_t;  // a point in a stream
  virtual ~Streams() = default;
  virtual bool has(Engine kind) const = 0;  // may be called from any thread
  // `now` reads the run's clock, to which time_of() refers: as exactly as the device can tell (a GPU's own clock is
  // read over the bus, to some microseconds). May be called from any thread, as long as the streams live.
  virtual void bind(const std::function<TimeNs()>& now) = 0;
  // Calls `enqueue`, whose kernels go to the lane's stream.
  virtual void run(LaneIndex lane, const std::function<void()>& enqueue) = 0;
  // What `enqueue` would hand to the lane's stream, without handing it over. Null where the device does not keep
  // such, or cannot keep this.
  virtual std::unique_ptr<Recording> record(LaneIndex, const std::function<void()>& /*enqueue*/) { return nullptr; }
  // The stream goes on no earlier than `least_ns` after it came to the copy.
  virtual void copy(LaneIndex lane, std::byte* target, const std::byte* source, std::int64_t bytes,
                    std::int64_t least_ns) = 0;
  virtual Mark mark(LaneIndex lane) = 0;
  // What the stream gets from now on starts after the mark is reached.
  virtual void wait(LaneIndex lane, Mark mark) = 0;
  virtual bool reached(Mark mark) = 0;
  virtual TimeNs time_of(Mark mark) = 0;  // of a reached one
  virtual void drop(Mark mark) = 0;       // it may be handed out again
};

// What a device is, for people, and how much memory arenas may take of it now.
struct DeviceFacts {
  std::string name;    // "NVIDIA H200"
  std::string driver;  // "CUDA 13.0"; "" where there is none
  std::int64_t clock_hz = 0, memory_clock_hz = 0;
  std::int64_t free_bytes = 0;
  std::int32_t processors = 0;  // multiprocessors of a GPU
};

// Of a rank, in which it does something.
struct DeviceGroups {
  std::vector<RankGroup> collectives;
  std::vector<RankGroup> transfers;  // pairs, of which the first sends
};

class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceFacts facts() = 0;
  virtual Arena device_arena(std::int64_t bytes) = 0;
  // Host memory where the device copies at full speed, but for its last `pageable_bytes`. What is in it is undefined.
  // The device outlives its arenas.
  virtual Arena pinned_arena(const std::string& name, std::int64_t bytes, std::int64_t pageable_bytes = 0) = 0;
  // What of that memory is farther from the processor's cores than the rest, now.
  virtual std::int64_t far_bytes() const { return 0; }
  virtual std::unique_ptr<Streams> open_streams() = 0;
  // Copies between any two places and waits for it, with what no stream changes meanwhile.
  virtual void copy_now(std::byte* target, const std::byte* source, std::int64_t bytes) = 0;
  // Between the devices of ranks, which meet through `host`: blocks until all of the groups are there. Streams that are
  // opened afterwards have lanes for it. The device outlives it.
  virtual std::shared_ptr<Collective> collective(Collective& /*host*/, Rank /*rank*/, const DeviceGroups& /*groups*/) {
    throw std::logic_error("this device works for one rank");
  }
};

}  // namespace tandem
