// LibTorch's CPU allocations while a body runs: served from the command's workspace, whose bytes core placed, and
// refused beyond it. Outside bodies LibTorch's own allocator serves. Must not know ops, lanes or who runs a body.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tandem {

// Makes LibTorch ask Tandem for CPU memory. Once a process, before the first body; further calls do nothing.
void install_workspace_allocator();

// While it lives, this thread's LibTorch allocations come from [begin, begin + bytes). One at a time a thread.
class WorkspaceScope {
 public:
  WorkspaceScope(std::byte* begin, std::int64_t bytes);
  ~WorkspaceScope();
  WorkspaceScope(const WorkspaceScope&) = delete;
  WorkspaceScope& operator=(const WorkspaceScope&) = delete;

  // The highest end of any allocation so far, from `begin`: what an op must declare as its workspace.
  std::int64_t peak_bytes() const { return peak_; }
  // The most bytes alive at one time: at most peak_bytes(), which also counts gaps between allocations.
  std::int64_t peak_live_bytes() const { return peak_live_; }
  // Bytes allocated and not freed. A body that returns with any would have them overwritten by the next command.
  std::int64_t live_bytes() const { return live_; }

  bool contains(const void* address) const;
  // First fit at 64-byte borders. Throws c10::Error with the figures if no gap is large enough.
  void* allocate(std::size_t bytes);
  // False if `address` is not an allocation of this scope.
  bool free(void* address);

 private:
  struct Range {
    std::int64_t offset = 0, bytes = 0;
    std::int64_t end() const { return offset + bytes; }
  };
  std::byte* begin_;
  std::int64_t bytes_;
  std::vector<Range> used_;  // by offset; few: a body keeps some dozens of tensors alive
  std::int64_t live_ = 0, peak_live_ = 0, peak_ = 0;
};

}  // namespace tandem
