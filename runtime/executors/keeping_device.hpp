// A device that keeps its pinned host memory from one run to the next: pinning takes 0.16 s a GiB, which runs one after
// the other in a process need to pay once only. Must not know what the memory is for.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "runtime/executors/device.hpp"

namespace tandem {

class KeepingDevice final : public Device {
 public:
  explicit KeepingDevice(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  // Out of the smallest memory that is large enough and unused. Where there is none, all that is unused is given up
  // before more is pinned, so that never more is kept than runs have needed at a time.
  Arena pinned_arena(const std::string& name, std::int64_t bytes, std::int64_t pageable_bytes = 0) override;

  std::int64_t far_bytes() const override { return device_->far_bytes(); }
  DeviceFacts facts() override { return device_->facts(); }
  Arena device_arena(std::int64_t bytes) override { return device_->device_arena(bytes); }
  std::unique_ptr<Streams> open_streams() override { return device_->open_streams(); }
  void copy_now(std::byte* target, const std::byte* source, std::int64_t bytes) override {
    device_->copy_now(target, source, bytes);
  }

 private:
  std::shared_ptr<Device> device_;
  std::multimap<std::int64_t, std::shared_ptr<Arena>> unused_;  // by size
};

}  // namespace tandem
