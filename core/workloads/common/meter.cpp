#include "core/workloads/common/meter.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace tandem {

std::int64_t WorkspaceMeter::take(std::int64_t bytes) {
  CHECK(bytes >= 0, bytes);
  const std::int64_t rounded = (bytes + kGranule - 1) / kGranule * kGranule;
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

}  // namespace tandem
