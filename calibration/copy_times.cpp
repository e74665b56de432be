#include <algorithm>

#include "calibration/lane_times.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kLeastBytes = 4096, kMostBytes = std::int64_t{256} << 20, kQuickBytes = std::int64_t{64} << 20;
constexpr std::int64_t kSizeStep = 4;
// Copies of one size: as many as move this much, within bounds.
constexpr std::int64_t kMovedBytes = std::int64_t{512} << 20;
constexpr std::int64_t kLeastCopies = 5, kMostCopies = 64;
// Both directions at once are timed with copies of this size, as a bucket's are.
constexpr std::int64_t kPairBytes = std::int64_t{16} << 20;

std::int64_t copies_of(std::int64_t bytes) { return std::clamp(kMovedBytes / bytes, kLeastCopies, kMostCopies); }

// Copy i of a size lies behind copy i - 1, and the next size goes on where this one ended.
class Cursor {
 public:
  Cursor(std::int64_t begin, std::int64_t bytes) : begin_(begin), bytes_(bytes) {}
  std::int64_t next(std::int64_t bytes) {
    if (at_ + bytes > bytes_) at_ = 0;
    const std::int64_t offset = begin_ + at_;
    at_ += bytes;
    return offset;
  }

 private:
  std::int64_t begin_, bytes_, at_ = 0;
};

double duration_ns(const Event& event) { return static_cast<double>(event.finished.ns - event.started.ns); }

std::vector<CopyTime> time_lane(Workbench& bench, Engine lane, std::int64_t scratch_bytes, bool quick) {
  Cursor cursor(bench.scratch_offset(), scratch_bytes);
  std::vector<CopyTime> times;
  const std::int64_t most = std::min(scratch_bytes, quick ? kQuickBytes : kMostBytes);
  for (std::int64_t bytes = kLeastBytes; bytes <= most; bytes *= kSizeStep) {
    for (std::int64_t i = 0; i < copies_of(bytes); ++i) bench.add_copy(lane, cursor.next(bytes), bytes);
    std::vector<double> ns;
    for (const Event& event : bench.execute().events) ns.push_back(duration_ns(event));
    times.push_back({bytes, summarize(ns)});
  }
  return times;
}

// What both lanes moved in the time that both were busy.
double time_both(Workbench& bench, std::int64_t scratch_bytes) {
  const std::int64_t half = scratch_bytes / 2;
  Cursor up(bench.scratch_offset(), half), down(bench.scratch_offset() + half, half);
  for (std::int64_t i = 0; i < copies_of(kPairBytes); ++i) {
    bench.add_copy(Engine::H2D, up.next(kPairBytes), kPairBytes);
    bench.add_copy(Engine::D2H, down.next(kPairBytes), kPairBytes);
  }
  const std::vector<Event> events = bench.execute().events;
  std::vector<double> ns;
  for (const Event& event : events) ns.push_back(duration_ns(event));
  return 2 * static_cast<double>(kPairBytes) / summarize(ns).median * 1e9;
}

}  // namespace

CopyTimes time_copies(Workbench& bench, std::int64_t scratch_bytes, bool quick) {
  // First touches are page faults, not copies.
  bench.add_copy(Engine::H2D, bench.scratch_offset(), scratch_bytes);
  bench.add_copy(Engine::D2H, bench.scratch_offset(), scratch_bytes);
  bench.execute();
  CopyTimes times;
  times.h2d = time_lane(bench, Engine::H2D, scratch_bytes, quick);
  times.d2h = time_lane(bench, Engine::D2H, scratch_bytes, quick);
  times.both_bytes_per_s = time_both(bench, scratch_bytes);
  return times;
}

}  // namespace tandem
