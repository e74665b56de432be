// A memory pool of one tier: places blocks at offsets under a hard capacity, charging bytes in issue order: bytes freed
// by an earlier command may be handed out before that command ran, together with the fence that says what to wait for.
// Must not know values, tiers or policies.
#pragma once

#include <array>
#include <bit>
#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/ids.hpp"

namespace tandem {

// The latest command of a lane that touches some bytes. Small: each part of each block has several.
struct Use {
  LaneIndex lane;
  CommandId id : 56 = kNoCommand;

  static constexpr CommandId kLastId = (CommandId{1} << 55) - 1;
  Use() = default;
  Use(LaneIndex its_lane, CommandId command) : lane(its_lane), id(command & kLastId) {}
  bool operator==(const Use&) const = default;
};
static_assert(sizeof(Use) == 8);

// Per lane, the latest command whose event has been seen: all before it are finished too.
using LaneProgress = std::array<CommandId, kLaneCount>;

// At most one use a lane, the latest: lanes are FIFO.
class Fence {
  static constexpr std::size_t kUsualLanes = 6;  // that touch the same bytes: more take memory of their own

 public:
  void add(Use use) {
    if (use.id == kNoCommand) return;
    for (Use& u : uses_)
      if (u.lane == use.lane) {
        if (u.id < use.id) u.id = use.id;
        return;
      }
    uses_.push_back(use);
  }
  void add(const Fence& other) {
    for (Use use : other.uses_) add(use);
  }
  // Forgets what is finished.
  void prune(const LaneProgress& progress) {
    for (std::size_t i = uses_.size(); i-- > 0;)
      if (uses_[i].id <= progress[uses_[i].lane.place()]) uses_.erase(uses_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  // A command of this lane, if it is one, waits for nothing by it.
  bool free_for(std::optional<LaneIndex> lane) const {
    return uses_.empty() || (lane && uses_.size() == 1 && uses_.front().lane == *lane);
  }
  void clear() { uses_.clear(); }
  bool operator==(const Fence&) const = default;
  bool empty() const { return uses_.empty(); }
  const auto& uses() const { return uses_; }

 private:
  boost::container::small_vector<Use, kUsualLanes> uses_;
};

// Long-lived blocks are placed from the low end, transient ones from the high end, which keeps the middle whole.
enum class End : std::uint8_t { Low, High };

class Pool {
 public:
  // Sizes of blocks: multiples of the alignment, or powers of two that are at least as large.
  enum class Blocks : std::uint8_t { Aligned, PowersOfTwo };

  // The alignment is a power of two. `kept_bytes` lie beside the capacity, always taken: they count in the peak alone.
  Pool(std::int64_t capacity_bytes, std::int64_t alignment_bytes, std::int64_t kept_bytes = 0,
       Blocks blocks = Blocks::Aligned);

  // An offset for `bytes`, or none. Adds to `waits` what last used those bytes. Prefers bytes for which a command of
  // `lane` need not wait: that nothing still uses, or only the lane itself. With `packed` it takes the outermost ones,
  // which leaves no holes.
  std::optional<std::int64_t> allocate(std::int64_t bytes, End end, const LaneProgress& progress, Fence& waits,
                                       std::optional<LaneIndex> lane = std::nullopt, bool packed = false);
  // What an allocate() of so many bytes does to the pool that is known to fail.
  void refuse(std::int64_t bytes, const LaneProgress& progress);
  // Gives bytes back; `fence` holds the unfinished commands that touched them. `bytes` as asked for in allocate.
  void free(std::int64_t offset, std::int64_t bytes, const Fence& fence, const LaneProgress& progress);

  // True if so many bytes in a row are free in [begin, end), at whose borders no free bytes adjoin.
  bool has_run(std::int64_t bytes, std::int64_t begin, std::int64_t end) const;

  // Free bytes, and what still uses them.
  struct Gap {
    std::int64_t offset = 0, bytes = 0;
    Fence fence;
  };
  // Keeps `allocate` from the gaps that lie wholly in [begin, end), until they are shown again.
  std::vector<Gap> hide(std::int64_t begin, std::int64_t end);
  void show(const std::vector<Gap>& hidden, const LaneProgress& progress);

  // What a block of so many bytes takes.
  std::int64_t rounded(std::int64_t bytes) const {
    const std::int64_t aligned = (bytes + alignment_ - 1) & -alignment_;
    return blocks_ == Blocks::Aligned ? aligned
                                      : static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(aligned)));
  }
  std::int64_t capacity_bytes() const { return capacity_; }
  std::int64_t kept_bytes() const { return kept_; }
  std::int64_t charged_bytes() const { return charged_; }
  std::int64_t free_bytes() const { return capacity_ - charged_; }
  std::int64_t peak_bytes() const { return kept_ + peak_; }
  // The most free bytes that lie in a row.
  std::int64_t longest_row_bytes() const;

 private:
  // Free bytes with one fence; neighbours with other fences may adjoin. Plain numbers, because segments are moved
  // often.
  struct Segment {
    std::int64_t offset = 0, bytes = 0;
    std::int32_t fence = kNone;  // index into fences_; kNone: nothing still uses them
    std::int64_t end() const { return offset + bytes; }
    bool adjoins(const Segment& other) const { return end() == other.offset || other.end() == offset; }
  };
  struct Span {  // adjoining segments [first, last) that together hold the bytes
    std::size_t first = 0, last = 0;
  };
  template <typename Iterator, typename Usable>
  static std::pair<Iterator, Iterator> first_fit(Iterator at, Iterator last, std::int64_t bytes, const Usable& usable);
  template <typename Usable>
  std::optional<Span> find(std::int64_t bytes, End end, const Usable& usable) const;
  void tidy(const LaneProgress& progress);
  std::int32_t keep_fence(const Fence& fence);
  void forget_fence(std::int32_t fence);
  void prune(Segment& segment, const LaneProgress& progress);
  bool has_fence(const Segment& segment, const Fence& fence) const;
  void add_fence(const Segment& segment, Fence& waits) const;
  std::int64_t take(Span span, std::int64_t bytes, End end, Fence& waits);

  std::int64_t capacity_, alignment_, kept_;
  Blocks blocks_;
  std::int64_t charged_ = 0, peak_ = 0;
  std::vector<Segment> free_;  // by offset
  std::vector<Fence> fences_;
  std::vector<std::int32_t> unused_fences_;
  std::size_t tidy_at_ = 32;  // number of segments that starts the next tidy()
};

}  // namespace tandem
