// How free bytes that lie apart become one hole: the blocks between them move elsewhere in the device's memory, in the
// compute lane, at the memory's speed. To evict them instead takes two trips through PCIe.
#include <algorithm>
#include <utility>
#include <vector>

#include "core/scheduler/scheduler.hpp"

namespace tandem {
namespace {

// Plans that are tried for one hole. They cost more and more, and few fail: what is free elsewhere is nearly as much as
// what has to move there.
constexpr std::size_t kMostTries = 16;

// A run of bytes that is free once the blocks [first, last), in the order of their offsets, are gone.
struct Hole {
  std::size_t first = 0, last = 0;
  std::int64_t begin = 0, end = 0, moved_bytes = 0;
};

struct Occupied {
  BlockId block = kNone;
  std::int64_t begin = 0, end = 0;
  bool movable = false;
};

// From each block on, the fewest that make a hole of so many bytes; those first of which fewest bytes have to move.
std::vector<Hole> holes(const std::vector<Occupied>& blocks, std::int64_t capacity, std::int64_t bytes) {
  std::vector<Hole> found;
  for (std::size_t first = 0; first < blocks.size(); ++first) {
    Hole hole{first, first, first == 0 ? 0 : blocks[first - 1].end, 0, 0};
    while (hole.last < blocks.size() && blocks[hole.last].movable && hole.end - hole.begin < bytes) {
      hole.moved_bytes += blocks[hole.last].end - blocks[hole.last].begin;
      ++hole.last;
      hole.end = hole.last == blocks.size() ? capacity : blocks[hole.last].begin;
    }
    if (hole.end - hole.begin >= bytes) found.push_back(hole);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Hole& a, const Hole& b) { return a.moved_bytes < b.moved_bytes; });
  return found;
}

}  // namespace

bool Scheduler::settled(const Block& block) const {
  return std::all_of(block.segments.begin(), block.segments.end(), [&](const Segment& segment) {
    return segment.content == kNone || segment.writer.engine == Engine::Compute ||
           segment.writer.id <= progress_[static_cast<std::size_t>(segment.writer.engine)];
  });
}

// To move a block that is still being filled through PCIe, the compute lane waits for that: only where nothing else
// helps.
bool Scheduler::make_hole(std::int64_t bytes) {
  const Pool& pool = pools_[static_cast<std::size_t>(Tier::Device)];
  if (pool.free_bytes() < pool.rounded(bytes)) return false;
  return make_hole(bytes, /*may_wait=*/false) || make_hole(bytes, /*may_wait=*/true);
}

bool Scheduler::make_hole(std::int64_t bytes, bool may_wait) {
  const Pool& pool = pools_[static_cast<std::size_t>(Tier::Device)];
  std::vector<Occupied> blocks;
  residency_.for_each(Tier::Device, [&](BlockId id, const Block& block) {
    blocks.push_back({id, block.offset, block.offset + pool.rounded(block.range.bytes), may_wait || settled(block)});
  });
  std::sort(blocks.begin(), blocks.end(), [](const Occupied& a, const Occupied& b) { return a.begin < b.begin; });
  const auto found = holes(blocks, pool.capacity_bytes(), pool.rounded(bytes));
  for (std::size_t i = 0; i < std::min(found.size(), kMostTries); ++i) {
    std::vector<BlockId> moved;
    for (std::size_t b = found[i].first; b < found[i].last; ++b) moved.push_back(blocks[b].block);
    if (move_out(moved, found[i].begin, found[i].end)) return true;
  }
  return false;
}

// Finds all of them places outside [begin, end), the largest first, and moves them there; false if there are none.
// Each goes towards its own end: what lives long would else come to lie in the middle, in the way of all that follows.
bool Scheduler::move_out(std::vector<BlockId> blocks, std::int64_t begin, std::int64_t end) {
  Pool& pool = pools_[static_cast<std::size_t>(Tier::Device)];
  const auto bytes = [&](BlockId id) { return residency_.block(id).range.bytes; };
  std::stable_sort(blocks.begin(), blocks.end(), [&](BlockId a, BlockId b) { return bytes(a) > bytes(b); });
  Pool trial = pool;
  const auto hidden = trial.hide(begin, end);
  std::vector<std::pair<std::int64_t, Fence>> places;
  for (BlockId id : blocks) {
    const End side = end_of(residency_.block(id).holders.front());
    Fence last_users;
    const auto place = trial.allocate(bytes(id), side, progress_, last_users, Engine::Compute);
    if (!place || (side == End::Low) != (*place < begin)) return false;
    places.emplace_back(*place, last_users);
  }
  trial.show(hidden, progress_);
  pool = std::move(trial);
  for (std::size_t i = 0; i < blocks.size(); ++i) move(blocks[i], places[i].first, places[i].second);
  return true;
}

void Scheduler::move(BlockId id, std::int64_t offset, const Fence& last_users) {
  Block& block = residency_.block(id);
  const std::int64_t from = std::exchange(block.offset, offset);
  Fence old_users;
  for (Segment& segment : block.segments) {
    old_users.add(segment.writer);
    old_users.add(segment.readers);
    if (segment.content == kNone) {  // nothing yet, or no longer
      segment.writer = {};
      segment.readers = last_users;
      continue;
    }
    Fence waits = last_users;
    waits.add(segment.writer);
    const Use use = next_use(Engine::Compute);
    Command& command = emit(CommandKind::Copy, Engine::Compute, kNone);
    command.part = {segment.content, segment.range.first, segment.range.bytes};
    command.source = {rank_, block.tier, from + segment.range.first - block.range.first};
    command.target = {rank_, block.tier, block.address(segment.range.first)};
    wait_for(command, waits);
    old_users.add(use);
    segment.writer = use;
    segment.readers.clear();
  }
  give_back(block.holders.front(), block.tier, from, block.range, old_users);
}

}  // namespace tandem
