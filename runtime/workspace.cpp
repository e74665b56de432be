#include "runtime/workspace.hpp"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <set>

#include "core/scheduler/check.hpp"

namespace tandem {
namespace {

// LibTorch's kernels assume this alignment of every tensor that they allocate.
constexpr std::int64_t kAlignmentBytes = 64;
// Above any allocator that a library may have registered.
constexpr std::uint8_t kHighestPriority = 255;

thread_local WorkspaceScope* current_scope = nullptr;

// Workspace addresses that outlived their scope (the executor fails such a command). The tensor that holds one may
// still be destroyed later, and must not reach free().
struct Escaped {
  std::mutex mutex;
  std::set<void*> addresses;
  std::atomic<std::size_t> count{0};

  void add(void* address) {
    const std::lock_guard lock(mutex);
    addresses.insert(address);
    count = addresses.size();
  }
  bool remove(void* address) {
    if (count == 0) return false;
    const std::lock_guard lock(mutex);
    const bool found = addresses.erase(address) > 0;
    count = addresses.size();
    return found;
  }
};

// Never destroyed: static tensors are freed after any static object made later than they were.
Escaped& escaped() {
  static Escaped& instance = *new Escaped;
  return instance;
}

void free_anywhere(void* address) {
  if (current_scope != nullptr && current_scope->contains(address) && current_scope->free(address)) return;
  if (!escaped().remove(address)) c10::free_cpu(address);
}

class WorkspaceAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    void* address = nullptr;
    if (bytes > 0) address = current_scope != nullptr ? current_scope->allocate(bytes) : c10::alloc_cpu(bytes);
    return {address, address, &free_anywhere, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_anywhere; }
  void copy_data(void* target, const void* source, std::size_t bytes) const override {
    default_copy_data(target, source, bytes);
  }
};

}  // namespace

void install_workspace_allocator() {
  static std::once_flag once;
  static WorkspaceAllocator allocator;
  std::call_once(once, [] { c10::SetCPUAllocator(&allocator, kHighestPriority); });
}

WorkspaceScope::WorkspaceScope(std::byte* begin, std::int64_t bytes) : begin_(begin), bytes_(bytes) {
  CHECK(current_scope == nullptr, "a body runs inside a body");
  CHECK(bytes >= 0 && reinterpret_cast<std::uintptr_t>(begin) % kAlignmentBytes == 0, bytes);
  current_scope = this;
}

WorkspaceScope::~WorkspaceScope() {
  current_scope = nullptr;
  for (const Range& range : used_) escaped().add(begin_ + range.offset);
}

bool WorkspaceScope::contains(const void* address) const {
  const auto* byte = static_cast<const std::byte*>(address);
  return !std::less<>()(byte, begin_) && std::less<>()(byte, begin_ + bytes_);
}

void* WorkspaceScope::allocate(std::size_t asked) {
  const auto bytes = (static_cast<std::int64_t>(asked) + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
  std::int64_t offset = 0;
  auto gap_end = used_.begin();
  for (; gap_end != used_.end() && gap_end->offset - offset < bytes; ++gap_end) offset = gap_end->end();
  TORCH_CHECK(offset + bytes <= bytes_, "workspace of ", bytes_, " bytes exceeded: ", asked, " bytes asked for with ",
              live_, " in use");
  used_.insert(gap_end, {offset, bytes});
  live_ += bytes;
  peak_live_ = std::max(peak_live_, live_);
  peak_ = std::max(peak_, offset + bytes);
  return begin_ + offset;
}

bool WorkspaceScope::free(void* address) {
  const std::int64_t offset = static_cast<std::byte*>(address) - begin_;
  const auto range = std::find_if(used_.begin(), used_.end(), [&](const Range& r) { return r.offset == offset; });
  if (range == used_.end()) return false;
  live_ -= range->bytes;
  used_.erase(range);
  return true;
}

}  // namespace tandem
