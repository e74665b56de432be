#include "core/scheduler/residency.hpp"

#include <algorithm>
#include <utility>

#include "core/base/check.hpp"

namespace tandem {

BlockId Residency::add(ValueId holder, Tier tier, std::int64_t offset, ByteRange range, const Fence& last_users) {
  CHECK(at(holder, tier) == kNone && range.bytes > 0, holder, name_of(tier), offset, range.bytes);
  if (unused_.empty()) {
    unused_.push_back(static_cast<BlockId>(blocks_.size()));
    blocks_.emplace_back();
  }
  const BlockId id = unused_.back();
  unused_.pop_back();
  // In place: blocks come and go with every command.
  Block& b = block(id);
  b.tier = tier;
  b.offset = offset;
  b.range = range;
  b.holders.push_back(holder);
  Segment& whole = b.segments.emplace_back();
  whole.range = range;
  whole.readers = last_users;
  at(holder, tier) = id;
  touch(id);
  changed(holder);
  return id;
}

void Residency::remove(BlockId id) {
  order_.remove(id);
  note_change(id);
  Block& b = block(id);
  CHECK(b.holders.empty(), "a block that values still refer to is given up", id);
  b.holders.clear();
  b.segments.clear();
  b.home = false;
  b.guard = kUnguarded;
  unused_.push_back(id);
}

bool Residency::arrived(ValueId value, Tier tier, ByteRange range, const LaneProgress& progress) const {
  if (!valid(value, tier, range)) return false;
  const auto& segments = block(at(value, tier)).segments;
  return std::all_of(segments.begin(), segments.end(), [&](const Segment& segment) {
    const bool inside = segment.range.first < range.end() && range.first < segment.range.end();
    return !inside || segment.writer.id <= progress[segment.writer.lane.place()];
  });
}

boost::container::small_vector<ByteRange, 2> Residency::missing(ValueId value, Tier tier, ByteRange range) const {
  boost::container::small_vector<ByteRange, 2> gaps;
  std::int64_t next = range.first;  // all before it is valid or listed
  if (const BlockId id = at(value, tier); id != kNone)
    for (const Segment& segment : block(id).segments) {
      if (segment.content != value || segment.range.end() <= next) continue;
      if (segment.range.first >= range.end()) break;
      if (segment.range.first > next) gaps.push_back({next, segment.range.first - next});
      next = segment.range.end();
    }
  if (next < range.end()) gaps.push_back({next, range.end() - next});
  return gaps;
}

void Residency::split(Block& block, ByteRange range) {
  CHECK(block.covers(range), range.first, range.bytes, block.range.first, block.range.bytes);
  CHECK(
      block.segments.front().range.first == block.range.first && block.segments.back().range.end() == block.range.end(),
      "segments cover their block", block.range.first, block.range.bytes);
  for (std::int64_t cut : {range.first, range.end()})
    for (std::size_t i = 0; i < block.segments.size(); ++i) {
      Segment& segment = block.segments[i];
      if (cut <= segment.range.first || cut >= segment.range.end()) continue;
      Segment right = segment;
      right.range = {cut, segment.range.end() - cut};
      segment.range.bytes = cut - segment.range.first;
      block.segments.insert(block.segments.begin() + static_cast<std::ptrdiff_t>(i) + 1, std::move(right));
      break;
    }
}

void Residency::changed(ValueId value) {
  const Places& places = places_[static_cast<std::size_t>(value)];
  for (const BlockId id : places)
    if (id != kNone) order_.revive(id);
  if (const BlockId id = places[static_cast<std::size_t>(Tier::Device)]; id != kNone) note_change(id);
}

void Residency::note_change(BlockId id) {
  if (!follows_device_ || block(id).tier != Tier::Device) return;
  noted_.resize(blocks_.size(), false);
  if (noted_[static_cast<std::size_t>(id)]) return;
  noted_[static_cast<std::size_t>(id)] = true;
  changed_on_device_.push_back(id);
}

std::vector<BlockId> Residency::changed_on_device() {
  if (!follows_device_) {
    follows_device_ = true;
    for (std::size_t i = 0; i < blocks_.size(); ++i) note_change(static_cast<BlockId>(i));
  }
  for (const BlockId id : changed_on_device_) noted_[static_cast<std::size_t>(id)] = false;
  return std::exchange(changed_on_device_, {});
}

}  // namespace tandem
