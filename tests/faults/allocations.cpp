#include "tests/faults/allocations.hpp"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<bool> armed{false}, any_failed{false}, all_after{false}, one_thread{false};
std::atomic<std::int64_t> first_to_fail{-1}, calls_so_far{0};
thread_local bool is_the_thread = false;

[[maybe_unused]] bool fails() noexcept {
  if (!armed || (one_thread && !is_the_thread)) return false;
  const std::int64_t call = calls_so_far++, first = first_to_fail;
  if (first < 0 || call < first || (call > first && !all_after)) return false;
  any_failed = true;
  return true;
}

[[maybe_unused]] void* allocate(std::size_t bytes, std::size_t alignment) noexcept {
  if (fails()) return nullptr;
  if (bytes == 0) bytes = 1;
  if (alignment <= alignof(std::max_align_t)) return std::malloc(bytes);
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

[[maybe_unused]] void* allocate_or_throw(std::size_t bytes, std::size_t alignment) {
  void* address = allocate(bytes, alignment);
  if (address == nullptr) throw std::bad_alloc();
  return address;
}

}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which put theirs there
void* operator new(std::size_t bytes) { return allocate_or_throw(bytes, 1); }
void* operator new[](std::size_t bytes) { return allocate_or_throw(bytes, 1); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes, 1); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes, 1); }
void operator delete(void* address) noexcept { std::free(address); }
void operator delete[](void* address) noexcept { std::free(address); }
void operator delete(void* address, std::size_t) noexcept { std::free(address); }
void operator delete[](void* address, std::size_t) noexcept { std::free(address); }
void operator delete(void* address, std::align_val_t) noexcept { std::free(address); }
void operator delete[](void* address, std::align_val_t) noexcept { std::free(address); }
void operator delete(void* address, std::size_t, std::align_val_t) noexcept { std::free(address); }
void operator delete[](void* address, std::size_t, std::align_val_t) noexcept { std::free(address); }
void operator delete(void* address, const std::nothrow_t&) noexcept { std::free(address); }
void operator delete[](void* address, const std::nothrow_t&) noexcept { std::free(address); }

#endif

namespace tandem::testing {

ArmedAllocations::ArmedAllocations(const FailingAllocations& failing) {
  first_to_fail = failing.first;
  all_after = failing.all_after;
  one_thread = failing.this_thread;
  is_the_thread = true;
  calls_so_far = 0;
  any_failed = false;
  armed = true;
}

ArmedAllocations::~ArmedAllocations() {
  armed = false;
  is_the_thread = false;
}

std::int64_t ArmedAllocations::calls() { return calls_so_far; }
bool ArmedAllocations::failed() { return any_failed; }

}  // namespace tandem::testing
