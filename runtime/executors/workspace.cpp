#include "runtime/executors/workspace.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <set>
#include <string>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"

namespace tandem {
namespace {

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

}  // namespace

WorkspaceScope* WorkspaceScope::current() { return current_scope; }

bool WorkspaceScope::take_back(void* address) {
  if (current_scope != nullptr && current_scope->free(address)) return true;
  return escaped().remove(address);
}

WorkspaceScope::WorkspaceScope(std::byte* begin, std::int64_t bytes, Processor processor)
    : begin_(begin),
      bytes_(bytes),
      end_(bytes),
      processor_(processor),
      alignment_(processor == Processor::Device ? kDeviceAlignment : kHostAlignment) {
  CHECK(current_scope == nullptr, "a body runs inside a body");
  CHECK(bytes >= 0 && reinterpret_cast<std::uintptr_t>(begin) % static_cast<std::uintptr_t>(alignment_) == 0, bytes);
  current_scope = this;
}

WorkspaceScope::~WorkspaceScope() {
  current_scope = nullptr;
  for (const Range& range : used_) escaped().add(begin_ + range.offset);
  for (std::byte* address : taken_) escaped().add(address);
}

bool WorkspaceScope::contains(const void* address) const {
  const auto* byte = static_cast<const std::byte*>(address);
  return !std::less<>()(byte, begin_) && std::less<>()(byte, begin_ + bytes_);
}

void* WorkspaceScope::take_offer(std::int64_t bytes) {
  const auto found = std::find_if(offers_.begin(), offers_.end(), [&](const Offer& o) { return o.bytes == bytes; });
  if (found == offers_.end()) return nullptr;
  taken_.push_back(found->address);
  offers_.erase(found);
  return taken_.back();
}

void* WorkspaceScope::allocate(std::size_t asked) {
  if (!offers_.empty())
    if (void* offered = take_offer(static_cast<std::int64_t>(asked))) return offered;
  const auto bytes = (static_cast<std::int64_t>(asked) + alignment_ - 1) / alignment_ * alignment_;
  std::int64_t offset = first_;
  auto gap_end = used_.begin();
  for (; gap_end != used_.end() && gap_end->offset - offset < bytes; ++gap_end) offset = gap_end->end();
  if (offset + bytes > end_)
    throw DeviceError("workspace of " + std::to_string(end_ - first_) + " bytes exceeded: " + std::to_string(asked) +
                      " bytes asked for with " + std::to_string(live_) + " in use");
  used_.insert(gap_end, {offset, bytes});
  live_ += bytes;
  peak_live_ = std::max(peak_live_, live_);
  peak_ = std::max(peak_, offset + bytes);
  return begin_ + offset;
}

void* WorkspaceScope::at(std::int64_t offset, std::int64_t bytes) {
  CHECK(offset >= 0 && bytes >= 0 && offset + bytes <= bytes_, offset, bytes, bytes_);
  peak_ = std::max(peak_, offset + bytes);
  return begin_ + offset;
}

void WorkspaceScope::serve_from(std::int64_t offset, std::int64_t bytes) {
  CHECK(used_.empty() && offset >= 0 && bytes >= 0 && offset + bytes <= bytes_, used_.size(), offset, bytes, bytes_);
  first_ = offset;
  end_ = offset + bytes;
}

bool WorkspaceScope::free(void* address) {
  if (const auto taken = std::find(taken_.begin(), taken_.end(), address); taken != taken_.end()) {
    taken_.erase(taken);
    return true;
  }
  if (!contains(address)) return false;
  const std::int64_t offset = static_cast<std::byte*>(address) - begin_;
  const auto range = std::find_if(used_.begin(), used_.end(), [&](const Range& r) { return r.offset == offset; });
  if (range == used_.end()) return false;
  live_ -= range->bytes;
  used_.erase(range);
  return true;
}

}  // namespace tandem
