#include "core/scheduler/pool.hpp"

#include <algorithm>

#include "core/scheduler/check.hpp"

namespace tandem {

Pool::Pool(std::int64_t capacity_bytes, std::int64_t alignment_bytes)
    : capacity_(capacity_bytes / alignment_bytes * alignment_bytes), alignment_(alignment_bytes) {
  if (capacity_ > 0) free_.push_back({0, capacity_, {}});
}

// First fit from either end, over runs of adjoining segments.
std::optional<Pool::Span> Pool::find(std::int64_t bytes, End end, bool clean_only) const {
  const std::size_t n = free_.size();
  std::size_t start = 0;  // of the run, counted from the chosen end
  std::int64_t run = 0, edge = -1;
  for (std::size_t i = 0; i < n; ++i) {
    const Segment& segment = free_[end == End::Low ? i : n - 1 - i];
    const bool adjoins = run > 0 && (end == End::Low ? segment.offset : segment.end()) == edge;
    if (clean_only && !segment.fence.empty()) {
      run = 0;
      continue;
    }
    if (!adjoins) {
      run = 0;
      start = i;
    }
    run += segment.bytes;
    edge = end == End::Low ? segment.end() : segment.offset;
    if (run >= bytes) return end == End::Low ? Span{start, i + 1} : Span{n - 1 - i, n - start};
  }
  return std::nullopt;
}

// Forgets uses that are finished and joins neighbours with equal fences.
void Pool::tidy(const LaneProgress& progress) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < free_.size(); ++i) {
    Segment& segment = free_[i];
    segment.fence.prune(progress);
    if (kept > 0 && free_[kept - 1].end() == segment.offset && segment.fence == free_[kept - 1].fence) {
      free_[kept - 1].bytes += segment.bytes;
    } else {
      if (kept != i) free_[kept] = std::move(segment);
      ++kept;
    }
  }
  free_.resize(kept);
  tidy_at_ = std::max<std::size_t>(32, 2 * kept);
}

std::int64_t Pool::take(Span span, std::int64_t bytes, End end, Fence& waits) {
  std::int64_t left = bytes;
  std::int64_t offset = 0;
  if (end == End::Low) {
    offset = free_[span.first].offset;
    std::size_t i = span.first;
    for (; left > 0; ++i) {
      Segment& segment = free_[i];
      waits.add(segment.fence);
      const std::int64_t taken = std::min(left, segment.bytes);
      segment.offset += taken;
      segment.bytes -= taken;
      left -= taken;
      if (segment.bytes > 0) break;
    }
    free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(span.first),
                free_.begin() + static_cast<std::ptrdiff_t>(i));
  } else {
    offset = free_[span.last - 1].end() - bytes;
    std::size_t i = span.last;  // one past the next to take
    for (; left > 0; --i) {
      Segment& segment = free_[i - 1];
      waits.add(segment.fence);
      const std::int64_t taken = std::min(left, segment.bytes);
      segment.bytes -= taken;
      left -= taken;
      if (segment.bytes > 0) break;
    }
    free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(i), free_.begin() + static_cast<std::ptrdiff_t>(span.last));
  }
  return offset;
}

std::optional<std::int64_t> Pool::allocate(std::int64_t bytes, End end, const LaneProgress& progress, Fence& waits,
                                           bool packed) {
  CHECK(bytes > 0, bytes);
  bytes = rounded(bytes);
  if (bytes > free_bytes()) return std::nullopt;
  if (free_.size() >= tidy_at_) tidy(progress);
  auto span = packed ? std::nullopt : find(bytes, end, true);
  if (!span) {
    tidy(progress);
    if (!packed) span = find(bytes, end, true);
    if (!span) span = find(bytes, end, false);
    if (!span) return std::nullopt;
  }
  charged_ += bytes;
  peak_ = std::max(peak_, charged_);
  return take(*span, bytes, end, waits);
}

void Pool::free(std::int64_t offset, std::int64_t bytes, const Fence& fence) {
  bytes = rounded(bytes);
  charged_ -= bytes;
  CHECK(charged_ >= 0, charged_, offset, bytes);
  const auto next = std::lower_bound(free_.begin(), free_.end(), offset,
                                     [](const Segment& segment, std::int64_t o) { return segment.offset < o; });
  CHECK(next == free_.end() || offset + bytes <= next->offset, offset, bytes);
  CHECK(next == free_.begin() || (next - 1)->end() <= offset, offset, bytes);
  // Values that die together have the same last users: joined, they stay one segment.
  const bool joins_before = next != free_.begin() && (next - 1)->end() == offset && (next - 1)->fence == fence;
  const bool joins_after = next != free_.end() && next->offset == offset + bytes && next->fence == fence;
  if (joins_before) {
    (next - 1)->bytes += bytes + (joins_after ? next->bytes : 0);
    if (joins_after) free_.erase(next);
  } else if (joins_after) {
    next->offset = offset;
    next->bytes += bytes;
  } else {
    free_.insert(next, {offset, bytes, fence});
  }
}

}  // namespace tandem
