// A body's temporary memory: served from the command's workspace, whose bytes core placed, and refused beyond it.
// Must not know ops, lanes, who runs a body, or which library asks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tandem {

// Where a body's operands are, and who performs it.
enum class Processor : std::uint8_t { Host, Device };

// LibTorch's kernels assume these of every tensor that they allocate.
inline constexpr std::int64_t kHostAlignment = 64, kDeviceAlignment = 512;

// While it lives, the temporaries of this thread's body come from [begin, begin + bytes). One at a time a thread.
class WorkspaceScope {
 public:
  // `begin`: in the processor's memory, aligned as its tensors are.
  WorkspaceScope(std::byte* begin, std::int64_t bytes, Processor processor = Processor::Host);
  ~WorkspaceScope();
  WorkspaceScope(const WorkspaceScope&) = delete;
  WorkspaceScope& operator=(const WorkspaceScope&) = delete;

  // The highest end of any allocation so far, from `begin`: what an op must declare as its workspace.
  std::int64_t peak_bytes() const { return peak_; }
  // The most bytes alive at one time: at most peak_bytes(), which also counts gaps between allocations.
  std::int64_t peak_live_bytes() const { return peak_live_; }
  // Bytes allocated and not freed. A body that returns with any would have them overwritten by the next command.
  std::int64_t live_bytes() const { return live_; }

  // This thread's, or null outside bodies.
  static WorkspaceScope* current();

  // Whose memory it is: LibTorch keeps a scalar or two of a body on the device in the host's.
  Processor processor() const { return processor_; }

  // What lies at fixed offsets, outside what is served from: counted in the peak.
  void* at(std::int64_t offset, std::int64_t bytes);
  // Serves from these bytes alone, until it is told other ones. Nothing may be allocated.
  void serve_from(std::int64_t offset, std::int64_t bytes);

  // The next allocations of exactly these bytes lie there, one each: a body's results, which are then where core
  // placed them. Outside of what is served from; until the next offer.
  struct Offer {
    std::byte* address;
    std::int64_t bytes;
  };
  void offer(std::vector<Offer> offers) { offers_ = std::move(offers); }
  // First fit at aligned borders. Throws DeviceError with the figures if no gap is large enough.
  void* allocate(std::size_t bytes);
  // False if `address` is not an allocation of this scope.
  bool free(void* address);
  // True for an address that the thread's scope, or one that has ended with it still allocated, gave out: it is then
  // free, and must not reach the heap.
  static bool take_back(void* address);

 private:
  bool contains(const void* address) const;
  void* take_offer(std::int64_t bytes);

  struct Range {
    std::int64_t offset = 0, bytes = 0;
    std::int64_t end() const { return offset + bytes; }
  };
  std::byte* begin_;
  std::int64_t bytes_;
  std::int64_t first_ = 0, end_ = 0;  // what is served from
  Processor processor_;
  std::int64_t alignment_;
  std::vector<Offer> offers_;
  std::vector<std::byte*> taken_;  // of offers
  std::vector<Range> used_;        // by offset; few: a body keeps some dozens of tensors alive
  std::int64_t live_ = 0, peak_live_ = 0, peak_ = 0;
};

}  // namespace tandem
