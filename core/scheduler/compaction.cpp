// How free bytes that lie apart become one hole: the blocks between them move elsewhere in the device's memory, in the
// compute lane, at the memory's speed. To evict them instead takes two trips through PCIe.
#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/check.hpp"
#include "core/scheduler/scheduler.hpp"

namespace tandem {
namespace {

// Plans that are tried for one hole. They cost more and more, and few fail: what is free elsewhere is nearly as much as
// what has to move there.
constexpr std::size_t kMostTries = 16;

}  // namespace

bool Scheduler::settled(const Segment& segment) const {
  return segment.content == kNone || segment.writer.lane == Engine::Compute ||
         segment.writer.id <= progress_[segment.writer.lane.place()];
}

bool Scheduler::settled(const Block& block) const {
  return std::all_of(block.segments.begin(), block.segments.end(),
                     [&](const Segment& segment) { return settled(segment); });
}

// To move a block that is still being filled through PCIe, the compute lane waits for that: only where nothing else
// helps.
bool Scheduler::make_hole(std::int64_t bytes) {
  const Pool& pool = pools_[static_cast<std::size_t>(Tier::Device)];
  if (pool.free_bytes() < pool.rounded(bytes)) return false;
  return make_hole(bytes, /*may_wait=*/false) || make_hole(bytes, /*may_wait=*/true);
}

bool Scheduler::make_hole(std::int64_t bytes, bool may_wait) {
  follow_device();
  const Pool& pool = pools_[static_cast<std::size_t>(Tier::Device)];
  const std::int64_t needed = pool.rounded(bytes);
  for (const auto& window : holes_.cheapest(needed, pool.capacity_bytes(), kMostTries, may_wait)) {
    const HoleFinder::Hole hole = holes_.hole(window.begin, needed, pool.capacity_bytes());
    if (move_out(hole.blocks, hole.begin, hole.end)) return true;
  }
  return false;
}

// Takes in what has happened to the device's blocks since the last time. Those that were being filled may be settled.
void Scheduler::follow_device() {
  for (std::size_t e = 0; e < filling_.size(); ++e)
    for (auto& filling = filling_[e]; !filling.empty() && filling.top().first <= progress_[e]; filling.pop())
      residency_.note_change(filling.top().second);
  const Pool& pool = pools_[static_cast<std::size_t>(Tier::Device)];
  std::vector<BlockId> fresh;
  const auto place = [&](const Block& block) {
    return HoleFinder::Place{block.offset, pool.rounded(block.range.bytes), !settled(block)};
  };
  for (const BlockId id : residency_.changed_on_device()) {
    const Block& block = residency_.block(id);
    const bool here = block.tier == Tier::Device && !block.holders.empty();
    if (here)
      for (const Segment& segment : block.segments)
        if (!settled(segment)) filling_[segment.writer.lane.place()].push({segment.writer.id, id});
    const HoleFinder::Place* old = holes_.place(id);
    if (old != nullptr && here && *old == place(block)) continue;
    if (old != nullptr) holes_.remove(id);
    if (here) fresh.push_back(id);
  }
  for (const BlockId id : fresh) holes_.add(id, place(residency_.block(id)));
}

// Finds all of them places outside [begin, end), the largest first, and moves them there; false if there are none.
// Each goes towards its own end: what lives long would else come to lie in the middle, in the way of all that follows.
bool Scheduler::move_out(std::vector<BlockId> blocks, std::int64_t begin, std::int64_t end) {
  Pool& pool = pools_[static_cast<std::size_t>(Tier::Device)];
  const auto bytes = [&](BlockId id) { return residency_.block(id).range.bytes; };
  CHECK(!blocks.empty(), begin, end);
  const auto larger = [&](BlockId a, BlockId b) { return bytes(a) > bytes(b); };
  const auto largest = std::min_element(blocks.begin(), blocks.end(), larger);
  const bool low = end_of(residency_.block(*largest).holders.front(), Tier::Device) == End::Low;
  if (!pool.has_run(bytes(*largest), low ? 0 : end, low ? begin : pool.capacity_bytes())) return false;
  std::stable_sort(blocks.begin(), blocks.end(), larger);
  Pool trial = pool;
  const auto hidden = trial.hide(begin, end);
  std::vector<std::pair<std::int64_t, Fence>> places;
  for (BlockId id : blocks) {
    const End side = end_of(residency_.block(id).holders.front(), Tier::Device);
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
  residency_.note_change(id);
  const std::int64_t from = std::exchange(block.offset, offset);
  CHECK(block.tier == Tier::Device && from != offset, name_of(block.tier), from, offset);
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
