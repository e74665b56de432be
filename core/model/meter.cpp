#include "core/model/meter.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "core/base/dtype.hpp"

namespace tandem {

std::int64_t WorkspaceMeter::take(std::int64_t bytes) {
  CHECK(bytes >= 0, bytes);
  const std::int64_t rounded = (bytes + granule_ - 1) / granule_ * granule_;
  std::int64_t offset = 0;
  auto next = used_.begin();
  for (; next != used_.end() && next->offset - offset < rounded; ++next) offset = next->offset + next->bytes;
  used_.insert(next, {offset, rounded});
  peak_ = std::max(peak_, offset + rounded);
  return offset;
}

void WorkspaceMeter::drop(std::int64_t offset) {
  const auto found = std::find_if(used_.begin(), used_.end(), [&](const Range& r) { return r.offset == offset; });
  CHECK(found != used_.end(), "a temporary is dropped that is not there", offset);
  used_.erase(found);
}

// LibTorch sums the rows of a [rows, columns] tensor in so many groups of threads that they fill the GPU, each of which
// leaves a sum in fp32 for each of its threads (ATen/native/cuda/Reduce.cuh: 4 rows of 32 threads with 4 columns each
// and no fewer than 16 values a thread; 2,048 threads a multiprocessor). More groups than fill it where a thread would
// have more than 256 values.
std::int64_t gpu_row_sum_bytes(std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t kColumns = 128, kRows = 4, kLeastValues = 16, kMostValues = 256,
                         kGroups = 16 * kMostGpuProcessors;
  if (columns == 0) return 0;
  const std::int64_t columns_of_groups = (columns + kColumns - 1) / kColumns;
  const std::int64_t filling = (kGroups + columns_of_groups - 1) / columns_of_groups;
  const std::int64_t worth = (rows + kRows * kLeastValues - 1) / (kRows * kLeastValues);
  const std::int64_t least = (rows + kRows * kMostValues - 1) / (kRows * kMostValues);
  return std::max(std::min(filling, worth), least) * columns * kColumns * size_of(DType::F32);
}

}  // namespace tandem
