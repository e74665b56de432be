#include "runtime/executors/keeping_device.hpp"

namespace tandem {

Arena KeepingDevice::pinned_arena(const std::string& name, std::int64_t bytes, std::int64_t pageable_bytes) {
  if (bytes == 0) return {};
  if (pageable_bytes > 0) return device_->pinned_arena(name, bytes, pageable_bytes);  // none like another
  std::shared_ptr<Arena> memory;
  if (const auto found = unused_.lower_bound(bytes); found != unused_.end()) {
    memory = found->second;
    unused_.erase(found);
  } else {
    unused_.clear();
    memory = std::make_shared<Arena>(device_->pinned_arena(name, bytes, 0));
  }
  return {name, memory->at(0, bytes), bytes,
          [this, memory](std::byte*) { unused_.emplace(memory->size_bytes(), memory); }};
}

}  // namespace tandem
