#include <algorithm>

#include "calibration/lane_times.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kLeastBytes = 4096, kSizeStep = 4;
// Copies of one size: as many as move this much, within bounds.
constexpr std::int64_t kMovedBytes = std::int64_t{512} << 20;
constexpr std::int64_t kLeastCopies = 5, kMostCopies = 64;

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

std::vector<CopyTime> time_lane(Workbench& bench, Engine lane, Cursor cursor, std::int64_t most_bytes) {
  std::vector<CopyTime> times;
  for (std::int64_t bytes = kLeastBytes; bytes <= most_bytes; bytes *= kSizeStep) {
    for (std::int64_t i = 0; i < copies_of(bytes); ++i) bench.add_copy(lane, cursor.next(bytes), bytes);
    std::vector<double> ns;
    for (const Event& event : bench.execute().events) ns.push_back(duration_ns(event));
    times.push_back({bytes, summarize(ns)});
  }
  return times;
}

// What both lanes moved in the time that both were busy.
double time_both(Workbench& bench, const CopyDesign& design) {
  const std::int64_t half = design.scratch_bytes / 2, bytes = design.bucket_bytes;
  Cursor up(bench.scratch_offset(), half), down(bench.scratch_offset() + half, half);
  for (std::int64_t i = 0; i < copies_of(bytes); ++i) {
    bench.add_copy(Engine::H2D, up.next(bytes), bytes);
    bench.add_copy(Engine::D2H, down.next(bytes), bytes);
  }
  const std::vector<Event> events = bench.execute().events;
  std::vector<double> up_ns, down_ns;
  for (std::size_t i = 0; i < events.size(); ++i) (i % 2 == 0 ? up_ns : down_ns).push_back(duration_ns(events[i]));
  return static_cast<double>(bytes) * (1 / summarize(up_ns).median + 1 / summarize(down_ns).median) * 1e9;
}

}  // namespace

CopyTimes time_copies(Workbench& bench, const CopyDesign& design) {
  // First touches are page faults, not copies.
  bench.add_copy(Engine::H2D, bench.scratch_offset(), design.scratch_bytes);
  bench.add_copy(Engine::D2H, bench.scratch_offset(), design.scratch_bytes);
  if (design.pageable_bytes > 0) bench.add_copy(Engine::D2H, bench.pageable_offset(), design.pageable_bytes);
  bench.execute();
  CopyTimes times;
  const Cursor scratch(bench.scratch_offset(), design.scratch_bytes);
  times.h2d = time_lane(bench, Engine::H2D, scratch, design.most_bytes);
  times.d2h = time_lane(bench, Engine::D2H, scratch, design.most_bytes);
  if (design.pageable_bytes > 0) {
    const Cursor pageable(bench.pageable_offset(), design.pageable_bytes);
    const std::int64_t most_bytes = std::min(design.most_bytes, design.pageable_bytes);
    times.pageable_h2d = time_lane(bench, Engine::H2D, pageable, most_bytes);
    times.pageable_d2h = time_lane(bench, Engine::D2H, pageable, most_bytes);
  }
  times.both_bytes_per_s = time_both(bench, design);
  return times;
}

}  // namespace tandem
