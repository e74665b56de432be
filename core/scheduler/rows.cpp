// How free bytes that lie apart become one row where a run would else end: blocks of the host slide together by way of
// the device, those of the device by way of the host. That is slow, but works however little is free, and needs no lane
// or copy of its own kind.
#include <algorithm>
#include <limits>
#include <vector>

#include "core/base/check.hpp"
#include "core/scheduler/scheduler.hpp"

namespace tandem {
namespace {

struct Occupied {
  BlockId block = kNone;
  std::int64_t begin = 0, end = 0;
  bool bound = false;  // must not leave the tier, not even on the way to another place in it
};

// The blocks [first, last), in the order of their offsets, slide down.
struct Slide {
  std::size_t first = 0, last = 0;
  std::int64_t moved_bytes = std::numeric_limits<std::int64_t>::max();
};

// Those of fewest bytes, none of them bound or larger than `largest`, that leave a row of `row` free bytes behind the
// last.
Slide cheapest_slide(const std::vector<Occupied>& blocks, std::int64_t capacity, std::int64_t row,
                     std::int64_t largest) {
  Slide best;
  for (std::size_t first = 0; first < blocks.size(); ++first) {
    std::int64_t free = blocks[first].begin - (first == 0 ? 0 : blocks[first - 1].end);
    Slide slide{first, first, 0};
    while (slide.last < blocks.size() && free < row) {
      const std::int64_t bytes = blocks[slide.last].end - blocks[slide.last].begin;
      if (bytes > largest || blocks[slide.last].bound) break;
      slide.moved_bytes += bytes;
      ++slide.last;
      free += (slide.last == blocks.size() ? capacity : blocks[slide.last].begin) - blocks[slide.last - 1].end;
    }
    if (free >= row && slide.moved_bytes < best.moved_bytes) best = slide;
  }
  return best;
}

Tier beside(Tier tier) { return tier == Tier::Device ? Tier::HostPinned : Tier::Device; }

}  // namespace

bool Scheduler::make_row(Tier tier, std::int64_t bytes) {
  const Pool& pool = pools_[static_cast<std::size_t>(tier)];
  const std::int64_t row = pool.rounded(bytes);
  if (pool.free_bytes() < row || pool.longest_row_bytes() >= row) return false;
  std::vector<Occupied> blocks;
  residency_.for_each(tier, [&](BlockId id, const Block& block) {
    const bool bound = std::any_of(block.holders.begin(), block.holders.end(), [&](ValueId holder) {
      const Binding* option = binding(graph_.tensor_of(holder).reported_role());
      return option != nullptr && beside(tier) > option->lowest;
    });
    blocks.push_back({id, block.offset, block.offset + pool.rounded(block.range.bytes), bound});
  });
  std::sort(blocks.begin(), blocks.end(), [](const Occupied& a, const Occupied& b) { return a.begin < b.begin; });
  const std::int64_t room = pools_[static_cast<std::size_t>(beside(tier))].longest_row_bytes();
  const Slide slide = cheapest_slide(blocks, pool.capacity_bytes(), row, room);
  for (std::size_t i = slide.first; i < slide.last; ++i) slide_down(blocks[i].block);
  return slide.first < slide.last;
}

// A block's bytes leave and come back to the lowest place that holds them, which may overlap the old one.
void Scheduler::slide_down(BlockId id) {
  Block& block = residency_.block(id);
  residency_.note_change(id);
  const Tier tier = block.tier, other = beside(tier);
  const Engine away = tier == Tier::Device ? Engine::D2H : Engine::H2D;
  const Engine back = tier == Tier::Device ? Engine::H2D : Engine::D2H;
  Pool& pool = pools_[static_cast<std::size_t>(tier)];
  Pool& other_pool = pools_[static_cast<std::size_t>(other)];
  Fence scratch_users, old_users, new_users;
  const auto scratch = other_pool.allocate(block.range.bytes, End::High, progress_, scratch_users, away);
  CHECK(scratch, block.range.bytes, other_pool.longest_row_bytes());
  const auto copy_segment = [&](const Segment& segment, Engine lane, Place from, Place to, const Fence& waits) {
    const std::int64_t at = segment.range.first - block.range.first;
    const Use use = next_use(lane);
    Command& command = emit(CommandKind::Copy, lane, kNone);
    command.part = {segment.content, segment.range.first, segment.range.bytes};
    command.source = {rank_, from.tier, from.offset + at};
    command.target = {rank_, to.tier, to.offset + at};
    wait_for(command, waits);
    return use;
  };
  const Place between{rank_, other, *scratch};
  for (const Segment& segment : block.segments) {
    old_users.add(segment.writer);
    old_users.add(segment.readers);
    if (segment.content == kNone) continue;
    Fence waits = scratch_users;
    waits.add(segment.writer);
    old_users.add(copy_segment(segment, away, {rank_, tier, block.offset}, between, waits));
  }
  give_back(block.holders.front(), tier, block.offset, block.range, old_users);
  const auto place = pool.allocate(block.range.bytes, End::Low, progress_, new_users, back, /*packed=*/true);
  CHECK(place, block.range.bytes);
  block.offset = *place;
  new_users.add(old_users);  // the copies away among them
  scratch_users.clear();
  for (Segment& segment : block.segments) {
    segment.readers.clear();
    if (segment.content == kNone) {  // nothing yet, or no longer
      segment.writer = {};
      segment.readers = new_users;
      continue;
    }
    segment.writer = copy_segment(segment, back, between, {rank_, tier, block.offset}, new_users);
    scratch_users.add(segment.writer);
  }
  scratch_users.add(old_users);
  other_pool.free(*scratch, block.range.bytes, scratch_users, progress_);
}

}  // namespace tandem
