// Follows the temporaries of a body through their allocations, to declare the workspace that it needs at its peak.
// Must not know any family: a family's plan mirrors what its body allocates and frees, in the same order.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace tandem {

// What LibTorch's allocators round to.
inline constexpr std::int64_t kCpuGranule = 64, kGpuGranule = 512;

// Places temporaries first fit at borders of granules, as the workspace allocator does: gaps between them count.
class WorkspaceMeter {
 public:
  explicit WorkspaceMeter(std::int64_t granule = kCpuGranule) : granule_(granule) {}
  // Returns the temporary's offset, to be handed to drop().
  std::int64_t take(std::int64_t bytes);
  void drop(std::int64_t offset);
  // A temporary that lives for one call only.
  void touch(std::int64_t bytes) { drop(take(bytes)); }
  // Temporaries that are alive together, then gone.
  void touch_all(std::initializer_list<std::int64_t> sizes) {
    std::vector<std::int64_t> taken;
    for (const std::int64_t bytes : sizes) taken.push_back(take(bytes));
    for (const std::int64_t offset : taken) drop(offset);
  }
  std::int64_t peak() const { return peak_; }

 private:
  struct Range {
    std::int64_t offset, bytes;
  };
  std::vector<Range> used_;  // by offset
  std::int64_t granule_, peak_ = 0;
};

constexpr std::int64_t kMostGpuProcessors = 148;  // of GPUs that are trained on; an H200 has 132, a B200 148

// What LibTorch takes on a GPU, by itself, to sum the rows of a [rows, columns] tensor.
std::int64_t gpu_row_sum_bytes(std::int64_t rows, std::int64_t columns);

}  // namespace tandem
