#include "core/scheduler/hole_finder.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace tandem {
namespace {

// Sizes whose windows are kept: more than a model has kinds of operands, few enough that memory stays near linear.
constexpr std::size_t kMostSizes = 32;
// Changes after which windows are built anew, for each block.
constexpr std::size_t kMostChanges = 2;

}  // namespace

const HoleFinder::Place* HoleFinder::place(BlockId id) const {
  const auto i = static_cast<std::size_t>(id);
  return i < places_.size() && places_[i].bytes > 0 ? &places_[i] : nullptr;
}

void HoleFinder::remove(BlockId id) {
  Place& place = places_[static_cast<std::size_t>(id)];
  by_offset_.erase(place.offset);
  note({place.offset, 0, false});
  place = {};
}

void HoleFinder::add(BlockId id, Place place) {
  if (static_cast<std::size_t>(id) >= places_.size()) places_.resize(static_cast<std::size_t>(id) + 1);
  CHECK(place.bytes > 0, id, place.bytes);
  const bool fresh = by_offset_.emplace(place.offset, id).second;
  CHECK(fresh, "two blocks at", place.offset);
  places_[static_cast<std::size_t>(id)] = place;
  note({place.offset, place.bytes, place.pinned});
}

void HoleFinder::note(Change change) {
  if (sizes_.empty()) return;
  changes_.push_back(change);
  if (changes_.size() <= kMostChanges * by_offset_.size() + 64) return;
  changes_.clear();
  sizes_.clear();
}

HoleFinder::Sized& HoleFinder::sized(std::int64_t bytes, std::int64_t capacity) {
  if (const auto found = sizes_.find(bytes); found != sizes_.end()) return found->second;
  if (sizes_.size() >= kMostSizes)
    sizes_.erase(std::min_element(sizes_.begin(), sizes_.end(),
                                  [](const auto& a, const auto& b) { return a.second.asked < b.second.asked; }));
  Sized& fresh = sizes_.emplace(bytes, Sized{HoleWindows(bytes, capacity), changes_.size(), 0}).first->second;
  for (const auto& [offset, id] : by_offset_) {
    const Place& place = places_[static_cast<std::size_t>(id)];
    fresh.windows.add(offset, place.bytes, place.pinned);
  }
  return fresh;
}

std::vector<HoleWindows::Window> HoleFinder::cheapest(std::int64_t bytes, std::int64_t capacity, std::size_t most,
                                                      bool pinned_too) {
  Sized& at = sized(bytes, capacity);
  at.asked = ++calls_;
  const std::int64_t before = at.windows.steps();
  for (; at.seen < changes_.size(); ++at.seen) {
    const Change& change = changes_[at.seen];
    if (change.bytes == 0)
      at.windows.remove(change.offset);
    else
      at.windows.add(change.offset, change.bytes, change.pinned);
  }
  auto found = at.windows.cheapest(most, pinned_too);
  steps_ += at.windows.steps() - before;
  return found;
}

HoleFinder::Hole HoleFinder::hole(std::int64_t begin, std::int64_t bytes, std::int64_t capacity) {
  Hole hole{begin, capacity, {}};
  auto block = by_offset_.lower_bound(begin);
  for (; block != by_offset_.end() && block->first < begin + bytes; ++block) hole.blocks.push_back(block->second);
  if (block != by_offset_.end()) hole.end = block->first;
  steps_ += std::ssize(hole.blocks) + 1;
  return hole;
}

}  // namespace tandem
