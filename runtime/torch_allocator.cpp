#include "runtime/torch_allocator.hpp"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <string>

#include "core/base/errors.hpp"
#include "runtime/executors/workspace.hpp"

namespace tandem {
namespace {

// Above any allocator that a library may have registered.
constexpr std::uint8_t kHighestPriority = 255;

void free_anywhere(void* address) {
  if (!WorkspaceScope::take_back(address)) c10::free_cpu(address);
}

void* from_the_system(std::size_t bytes) {
  try {
    return c10::alloc_cpu(bytes);
  } catch (const c10::Error&) {
    throw DeviceError("out of memory: LibTorch was refused " + std::to_string(bytes) +
                      " bytes; give the process more memory, or lower limits.host_bytes in the scenario");
  }
}

class WorkspaceAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    WorkspaceScope* scope = WorkspaceScope::current();
    const bool serves = scope != nullptr && scope->processor() == Processor::Host;
    void* address = nullptr;
    if (bytes > 0) address = serves ? scope->allocate(bytes) : from_the_system(bytes);
    return {address, address, &free_anywhere, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_anywhere; }
  void copy_data(void* target, const void* source, std::size_t bytes) const override {
    default_copy_data(target, source, bytes);
  }
};

WorkspaceAllocator& workspace_allocator() {
  static WorkspaceAllocator allocator;
  return allocator;
}

std::atomic<bool> is_installed{false};

}  // namespace

// Once, until it is taken out again: tests put their own over it.
void install_workspace_allocator() {
  if (!is_installed.exchange(true)) c10::SetCPUAllocator(&workspace_allocator(), kHighestPriority);
}

void restore_allocator(c10::Allocator* before) {
  c10::SetCPUAllocator(before, kHighestPriority);
  is_installed = before == &workspace_allocator();
}

}  // namespace tandem
