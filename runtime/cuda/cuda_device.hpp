// The GPU behind the live executor: its memory, pinned host memory, and its streams. Must not know commands or bodies.
#pragma once

#include <memory>

#include "runtime/executors/device.hpp"
#include "runtime/executors/near_memory.hpp"

namespace tandem {

class CudaDevice final : public Device {
 public:
  // Takes the first of those that the process sees. Throws DeviceError where there is no GPU that answers, or not one
  // for each rank.
  explicit CudaDevice(Rank ranks = 1);
  DeviceFacts facts() override;
  Arena device_arena(std::int64_t bytes) override;
  Arena pinned_arena(const std::string& name, std::int64_t bytes, std::int64_t pageable_bytes = 0) override;
  std::unique_ptr<Streams> open_streams() override;
  void copy_now(std::byte* target, const std::byte* source, std::int64_t bytes) override;
  std::shared_ptr<Collective> collective(Collective& host, Rank rank, const DeviceGroups& groups) override;
  std::int64_t far_bytes() const override { return far_bytes_; }

 private:
  bool among_ranks_ = false;
  // Brings a new arena's memory in, near where there is such. Returns how much of it is far.
  std::int64_t bring_in(const Arena& arena);

  NearMemory near_memory_;
  std::int64_t far_bytes_ = 0;
};

}  // namespace tandem
