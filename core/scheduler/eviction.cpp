// How blocks leave a tier: those that are elsewhere too are dropped, the others saved in the tier below, which may
// first have to evict some itself. Tiers go one way, so that evictions nest no deeper than there are tiers.
#include <algorithm>

#include "core/scheduler/scheduler.hpp"

namespace tandem {
Tier Scheduler::below(Tier tier) const { return tier == Tier::Device && !one_pool_ ? Tier::HostPinned : Tier::Disk; }

std::int64_t Scheduler::refused_bytes(Tier tier) const {
  const NoRoom& refusal = refusals_[static_cast<std::size_t>(tier)];
  if (refusal.decision != kUnguarded && refusal.decision != decision_) return EvictionOrder::kNoRoomHelps;
  for (int t = static_cast<int>(tier); t < kTierCount; ++t)
    if (refusal.changes[static_cast<std::size_t>(t)] != residency_.order().changes(static_cast<Tier>(t)))
      return EvictionOrder::kNoRoomHelps;
  return refusal.bytes;
}

void Scheduler::note_refusal(Tier tier, std::int64_t bytes) {
  const std::int64_t known = refused_bytes(tier);
  NoRoom& refusal = refusals_[static_cast<std::size_t>(tier)];
  refusal = {.bytes = std::min(bytes, known)};
  for (int t = static_cast<int>(tier); t < kTierCount; ++t) {
    const auto i = static_cast<std::size_t>(t);
    refusal.changes[i] = residency_.order().changes(static_cast<Tier>(t));
    if (held_operands_[i]) refusal.decision = decision_;
  }
}

// Leaves the pools as if the tier had been asked again: it would tidy, and ask the tier below for what cannot leave.
void Scheduler::repeat_refusal(Tier tier, std::int64_t bytes) {
  pools_[static_cast<std::size_t>(tier)].refuse(bytes, progress_);
  if (tier == Tier::Disk) return;
  const std::int64_t stuck = residency_.order().passed_over(tier, EvictionOrder::Search::ended(), /*kept_too=*/true, 0);
  if (stuck < EvictionOrder::kNoRoomHelps) repeat_refusal(below(tier), stuck);
}

// The next block that may be able to leave.
BlockId Scheduler::next_to_leave(Tier tier, EvictionOrder::Search& search, bool kept_too) {
  if (tier == Tier::Disk) return residency_.order().next(tier, search, kept_too, EvictionOrder::kNoRoomHelps);
  const std::int64_t refused = refused_bytes(below(tier));
  const BlockId id = residency_.order().next(tier, search, kept_too, refused);
  if (refused == EvictionOrder::kNoRoomHelps) return id;
  const std::int64_t passed_over = residency_.order().passed_over(tier, search, kept_too, refused);
  if (passed_over < EvictionOrder::kNoRoomHelps) repeat_refusal(below(tier), passed_over);
  return id;
}

// Evicts the least recently used block that the current decision does not need; those that a policy keeps go last.
bool Scheduler::make_room(Tier tier) {
  bool& held_operands = held_operands_[static_cast<std::size_t>(tier)];
  held_operands = false;
  for (bool kept_too : {false, true}) {
    EvictionOrder::Search search;
    for (BlockId id; (id = next_to_leave(tier, search, kept_too)) != kNone;) {
      if (residency_.block(id).guard == decision_)
        held_operands = true;
      else if (evict(id))
        return true;
    }
  }
  return false;
}

void Scheduler::clear_tier(Tier tier) {
  EvictionOrder::Search search;
  for (BlockId id; (id = next_to_leave(tier, search, /*kept_too=*/true)) != kNone;) evict(id);
}

// Drops a block, saving below what is nowhere else; false if that does not fit.
bool Scheduler::evict(BlockId id) {
  const Tier tier = residency_.block(id).tier;
  const auto segments = residency_.block(id).segments;  // copies: saving may add blocks
  const auto holders = residency_.block(id).holders;
  for (const Segment& segment : segments) {
    if (segment.content == kNone || elsewhere(segment.content, segment.range, tier)) continue;
    if (save_below(segment.content, segment.range, tier)) continue;
    if (lacking_bytes_ > 0) residency_.order().stick(id, lacking_bytes_);
    return false;
  }
  for (ValueId holder : holders) drop(holder, tier);
  return true;
}

bool Scheduler::save_below(ValueId value, ByteRange range, Tier tier) {
  lacking_bytes_ = EvictionOrder::kNoRoomHelps;
  if (tier == Tier::Disk) return false;
  const Tier to = below(tier);
  const Binding* bound = binding(graph_.tensor_of(value).reported_role());
  if (bound != nullptr && to > bound->lowest) return false;
  const BlockId there = residency_.at(value, to);
  if (there == kNone) {
    const std::int64_t bytes = whole(value).bytes;
    const bool refused = bytes >= refused_bytes(to);
    if (refused)
      repeat_refusal(to, bytes), lack_ = {to, pools_[static_cast<std::size_t>(to)].rounded(bytes)};
    else if (allocate(value, whole(value), to, true) == kNone)
      note_refusal(to, bytes);
    lacking_bytes_ = bytes;
    if (residency_.at(value, to) == kNone) return false;
  } else if (!residency_.block(there).covers(range) || foreign(value, there, range)) {
    lacking_bytes_ = 0;
    return false;
  }
  residency_.touch(residency_.at(value, to));
  copy(value, range, tier, to);
  if (bound == nullptr || !bound->not_on_host || to == Tier::Disk) {
    evicted_bytes_[static_cast<std::size_t>(to)] += range.bytes;
    return true;
  }
  if (!save_below(value, range, to)) {
    lacking_bytes_ = 0;  // not of the tier below alone
    return false;
  }
  release(value, to);
  return true;
}

}  // namespace tandem
