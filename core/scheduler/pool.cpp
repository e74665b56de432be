#include "core/scheduler/pool.hpp"

#include <algorithm>
#include <bit>

#include "core/base/check.hpp"

namespace tandem {

Pool::Pool(std::int64_t capacity_bytes, std::int64_t alignment_bytes, std::int64_t kept_bytes, Blocks blocks)
    : capacity_(capacity_bytes / alignment_bytes * alignment_bytes),
      alignment_(alignment_bytes),
      kept_(kept_bytes),
      blocks_(blocks) {
  CHECK(std::has_single_bit(static_cast<std::uint64_t>(alignment_)), alignment_);
  CHECK(capacity_ >= 0 && kept_ >= 0, capacity_bytes, kept_bytes);
  if (capacity_ > 0) free_.push_back({0, capacity_, kNone});
}

// The first run of adjoining segments that holds the bytes, no longer than needed; empty if there is none.
template <typename Iterator, typename Usable>
std::pair<Iterator, Iterator> Pool::first_fit(Iterator at, Iterator last, std::int64_t bytes, const Usable& usable) {
  while (at != last) {
    if (!usable(*at)) {
      ++at;
      continue;
    }
    Iterator next = at;
    std::int64_t run = 0;
    do {
      run += next->bytes;
      ++next;
      if (run >= bytes) return {at, next};
    } while (next != last && usable(*next) && next->adjoins(*(next - 1)));
    at = next;
  }
  return {last, last};
}

template <typename Usable>
std::optional<Pool::Span> Pool::find(std::int64_t bytes, End end, const Usable& usable) const {
  if (end == End::Low) {
    const auto [first, last] = first_fit(free_.begin(), free_.end(), bytes, usable);
    if (first == last) return std::nullopt;
    return Span{static_cast<std::size_t>(first - free_.begin()), static_cast<std::size_t>(last - free_.begin())};
  }
  const auto [first, last] = first_fit(free_.rbegin(), free_.rend(), bytes, usable);
  if (first == last) return std::nullopt;
  return Span{static_cast<std::size_t>(free_.rend() - last), static_cast<std::size_t>(free_.rend() - first)};
}

std::int32_t Pool::keep_fence(const Fence& fence) {
  if (fence.empty()) return kNone;
  if (unused_fences_.empty()) {
    fences_.push_back(fence);
    return static_cast<std::int32_t>(fences_.size()) - 1;
  }
  const std::int32_t id = unused_fences_.back();
  unused_fences_.pop_back();
  fences_[static_cast<std::size_t>(id)] = fence;
  return id;
}

void Pool::forget_fence(std::int32_t fence) {
  if (fence != kNone) unused_fences_.push_back(fence);
}

void Pool::prune(Segment& segment, const LaneProgress& progress) {
  if (segment.fence == kNone) return;
  Fence& fence = fences_[static_cast<std::size_t>(segment.fence)];
  fence.prune(progress);
  if (!fence.empty()) return;
  forget_fence(segment.fence);
  segment.fence = kNone;
}

bool Pool::has_fence(const Segment& segment, const Fence& fence) const {
  return segment.fence == kNone ? fence.empty() : fences_[static_cast<std::size_t>(segment.fence)] == fence;
}

void Pool::add_fence(const Segment& segment, Fence& waits) const {
  if (segment.fence != kNone) waits.add(fences_[static_cast<std::size_t>(segment.fence)]);
}

// Forgets uses that are finished and joins neighbours with equal fences.
void Pool::tidy(const LaneProgress& progress) {
  std::size_t kept = 0;
  std::int64_t free = 0;
  for (std::size_t i = 0; i < free_.size(); ++i) {
    Segment& segment = free_[i];
    prune(segment, progress);
    free += segment.bytes;
    if (kept > 0 && free_[kept - 1].end() == segment.offset &&
        has_fence(free_[kept - 1],
                  segment.fence == kNone ? Fence{} : fences_[static_cast<std::size_t>(segment.fence)])) {
      free_[kept - 1].bytes += segment.bytes;
      forget_fence(segment.fence);
    } else {
      free_[kept] = segment;
      ++kept;
    }
  }
  CHECK(unused_fences_.size() <= fences_.size(), "a fence was given back twice", fences_.size());
  CHECK(free <= free_bytes(), "free and charged bytes are no more than all", free, charged_, capacity_);
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
      add_fence(segment, waits);
      const std::int64_t taken = std::min(left, segment.bytes);
      segment.offset += taken;
      segment.bytes -= taken;
      left -= taken;
      if (segment.bytes > 0) break;
      forget_fence(segment.fence);
    }
    free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(span.first),
                free_.begin() + static_cast<std::ptrdiff_t>(i));
  } else {
    offset = free_[span.last - 1].end() - bytes;
    std::size_t i = span.last;  // one past the next to take
    for (; left > 0; --i) {
      Segment& segment = free_[i - 1];
      add_fence(segment, waits);
      const std::int64_t taken = std::min(left, segment.bytes);
      segment.bytes -= taken;
      left -= taken;
      if (segment.bytes > 0) break;
      forget_fence(segment.fence);
    }
    free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(i), free_.begin() + static_cast<std::ptrdiff_t>(span.last));
  }
  return offset;
}

std::optional<std::int64_t> Pool::allocate(std::int64_t bytes, End end, const LaneProgress& progress, Fence& waits,
                                           std::optional<LaneIndex> lane, bool packed) {
  CHECK(bytes > 0, bytes);
  bytes = rounded(bytes);
  if (bytes > free_bytes()) return std::nullopt;
  if (free_.size() >= tidy_at_) tidy(progress);
  const auto clean = [&](const Segment& segment) {
    return segment.fence == kNone || fences_[static_cast<std::size_t>(segment.fence)].free_for(lane);
  };
  auto span = packed ? std::nullopt : find(bytes, end, clean);
  if (!span) {
    tidy(progress);
    if (!packed) span = find(bytes, end, clean);
    if (!span) span = find(bytes, end, [](const Segment&) { return true; });
    if (!span) return std::nullopt;
  }
  charged_ += bytes;
  peak_ = std::max(peak_, charged_);
  return take(*span, bytes, end, waits);
}

void Pool::refuse(std::int64_t bytes, const LaneProgress& progress) {
  if (rounded(bytes) <= free_bytes()) tidy(progress);
}

std::int64_t Pool::longest_row_bytes() const {
  std::int64_t longest = 0, row = 0;
  for (std::size_t i = 0; i < free_.size(); ++i) {
    row = i > 0 && free_[i - 1].end() == free_[i].offset ? row + free_[i].bytes : free_[i].bytes;
    longest = std::max(longest, row);
  }
  return longest;
}

void Pool::free(std::int64_t offset, std::int64_t bytes, const Fence& fence, const LaneProgress& progress) {
  CHECK(bytes > 0 && (offset & (alignment_ - 1)) == 0, offset, bytes, alignment_);
  bytes = rounded(bytes);
  charged_ -= bytes;
  CHECK(charged_ >= 0, charged_, offset, bytes);
  const auto next = std::lower_bound(free_.begin(), free_.end(), offset,
                                     [](const Segment& segment, std::int64_t o) { return segment.offset < o; });
  CHECK(offset + bytes <= (next == free_.end() ? capacity_ : next->offset), offset, bytes, capacity_);
  CHECK(offset >= (next == free_.begin() ? 0 : (next - 1)->end()), offset, bytes);
  if (next != free_.begin()) prune(*(next - 1), progress);
  if (next != free_.end()) prune(*next, progress);
  // Values that die together have the same last users: joined, they stay one segment.
  const bool joins_before = next != free_.begin() && (next - 1)->end() == offset && has_fence(*(next - 1), fence);
  const bool joins_after = next != free_.end() && next->offset == offset + bytes && has_fence(*next, fence);
  if (joins_before) {
    (next - 1)->bytes += bytes + (joins_after ? next->bytes : 0);
    if (!joins_after) return;
    forget_fence(next->fence);
    free_.erase(next);
  } else if (joins_after) {
    next->offset = offset;
    next->bytes += bytes;
  } else {
    free_.insert(next, {offset, bytes, keep_fence(fence)});
  }
}

bool Pool::has_run(std::int64_t bytes, std::int64_t begin, std::int64_t end) const {
  const auto at = [&](std::int64_t offset) {
    return std::lower_bound(free_.begin(), free_.end(), offset,
                            [](const Segment& segment, std::int64_t o) { return segment.offset < o; });
  };
  const auto last = at(end);
  return first_fit(at(begin), last, rounded(bytes), [](const Segment&) { return true; }).first != last;
}

std::vector<Pool::Gap> Pool::hide(std::int64_t begin, std::int64_t end) {
  CHECK(0 <= begin && begin <= end && end <= capacity_, begin, end, capacity_);
  std::vector<Gap> hidden;
  std::erase_if(free_, [&](const Segment& segment) {
    if (segment.offset < begin || segment.end() > end) return false;
    hidden.push_back({segment.offset, segment.bytes, {}});
    add_fence(segment, hidden.back().fence);
    forget_fence(segment.fence);
    return true;
  });
  return hidden;
}

void Pool::show(const std::vector<Gap>& hidden, const LaneProgress& progress) {
  for (const Gap& gap : hidden) {
    CHECK(gap.bytes <= free_bytes(), "what was hidden was free", gap.offset, gap.bytes, free_bytes());
    charged_ += gap.bytes;  // as if they had been handed out
    free(gap.offset, gap.bytes, gap.fence, progress);
  }
}

}  // namespace tandem
