#include "core/scheduler/eviction_order.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace tandem {

// Takes the block out of wherever it is.
void EvictionOrder::unlink(BlockId id) {
  Node& n = node(id);
  Queue& q = queue(n);
  if (n.state == State::Listed) {
    if (n.newer != kNone) node(n.newer).older = n.older;
    if (n.older != kNone) node(n.older).newer = n.newer;
    if (q.newest == id) q.newest = n.older;
    if (q.oldest == id) q.oldest = n.newer;
    n.newer = n.older = kNone;
  } else if (n.state == State::Revived) {
    q.revived.erase({n.stamp, id});
  } else if (n.state == State::Stuck) {
    const auto group = q.stuck.find(n.bytes);
    group->second.erase({n.stamp, id});
    if (group->second.empty()) q.stuck.erase(group);
  }
  n.state = State::Absent;
}

void EvictionOrder::touch(Tier tier, BlockId id) {
  if (static_cast<std::size_t>(id) >= nodes_.size()) nodes_.resize(static_cast<std::size_t>(id) + 1);
  note_change(tier);
  Node& n = node(id);
  CHECK(n.state == State::Absent || n.tier == tier, id);
  if (n.state == State::Listed && queue(n).newest == id) {
    n.stamp = next_stamp_++;
    return;
  }
  unlink(id);
  n.tier = tier;
  n.stamp = next_stamp_++;
  n.state = State::Listed;
  Queue& q = queue(n);
  n.older = q.newest;
  if (n.older != kNone) node(n.older).newer = id;
  q.newest = id;
  if (q.oldest == kNone) q.oldest = id;
}

void EvictionOrder::remove(BlockId id) {
  unlink(id);
  Node& n = node(id);
  n.kept = false;
  note_change(n.tier);
}

void EvictionOrder::keep(BlockId id) {
  Node& n = node(id);
  if (n.state == State::Absent || n.kept) return;
  unlink(id);
  n.kept = true;
  n.state = State::Revived;
  queue(n).revived.insert({n.stamp, id});
}

void EvictionOrder::stick(BlockId id, std::int64_t bytes) {
  CHECK(bytes > 0, id, bytes);
  Node& n = node(id);
  if (n.state == State::Absent || (n.state == State::Stuck && n.bytes == bytes)) return;
  unlink(id);
  n.bytes = bytes;
  n.state = State::Stuck;
  queue(n).stuck[bytes].insert({n.stamp, id});
}

void EvictionOrder::unstick(BlockId id) {
  Node& n = node(id);
  unlink(id);
  n.state = State::Revived;
  queue(n).revived.insert({n.stamp, id});
  note_change(n.tier);
}

EvictionOrder::Search EvictionOrder::Search::ended() {
  Search search;
  search.after_ = kEnd;
  search.begun_ = true;
  return search;
}

BlockId EvictionOrder::next(Tier tier, Search& search, bool kept_too, std::int64_t room_below) {
  auto& queues = tiers_[static_cast<std::size_t>(tier)].queues;
  if (!search.begun_) search.at_ = {queues[0].oldest, queues[1].oldest};
  search.begun_ = true;
  std::pair<std::int64_t, BlockId> best{std::numeric_limits<std::int64_t>::max(), kNone};
  const auto consider = [&](const ByStamp& blocks) {
    ++steps_;
    const auto first = blocks.lower_bound({search.after_ + 1, kNone});
    if (first != blocks.end()) best = std::min(best, *first);
  };
  for (std::size_t kept = 0; kept <= (kept_too ? 1 : 0); ++kept) {
    if (const BlockId id = search.at_[kept]; id != kNone) best = std::min(best, {node(id).stamp, id});
    if (!queues[kept].revived.empty()) consider(queues[kept].revived);
    for (const auto& [bytes, blocks] : queues[kept].stuck) {
      if (bytes >= room_below) break;
      consider(blocks);
    }
  }
  ++steps_;
  if (best.second == kNone) {
    search.after_ = kEnd;
    return kNone;
  }
  search.after_ = best.first;
  for (BlockId& at : search.at_)
    if (at == best.second) at = node(at).newer;
  return best.second;
}

std::int64_t EvictionOrder::passed_over(Tier tier, const Search& search, bool kept_too, std::int64_t room_below) const {
  const auto& queues = tiers_[static_cast<std::size_t>(tier)].queues;
  std::int64_t fewest = kNoRoomHelps;
  for (std::size_t kept = 0; kept <= (kept_too ? 1 : 0); ++kept)
    for (auto group = queues[kept].stuck.lower_bound(room_below); group != queues[kept].stuck.end(); ++group)
      if (group->second.begin()->first < search.after_) {
        fewest = std::min(fewest, group->first);
        break;
      }
  return fewest;
}

}  // namespace tandem
