#include "core/scheduler/repeated_runs.hpp"

#include <utility>

#include "core/base/check.hpp"

namespace tandem {
namespace {

// Over how many commands the share of repeated ones is averaged.
constexpr double kWindow = 32;

// All that a body's kernels depend on, if they depend on nothing else than their work and their operands' places.
std::vector<std::int64_t> key_of(WorkId work, const Command& command) {
  std::vector<std::int64_t> key{static_cast<std::int64_t>(work), command.part.first_byte, command.part.bytes};
  key.insert(key.end(), command.operands.begin(), command.operands.end());
  return key;
}

}  // namespace

RepeatedRuns::Turn RepeatedRuns::next(WorkId work, const Command& command) {
  const auto [found, is_new] = seen_.try_emplace(key_of(work, command));
  const Key& key = found->first;
  repeated_share_ += ((is_new ? 0.0 : 1.0) - repeated_share_) / kWindow;
  Seen& seen = found->second;
  if (is_new) {
    seen.place = unrecorded_.insert(unrecorded_.end(), &key);
    if (unrecorded_.size() > kMostSeen) forget(*unrecorded_.front());
    return {};
  }
  if (seen.turn.slot >= 0) {
    recorded_.splice(recorded_.end(), recorded_, seen.place);
    return seen.turn;
  }
  if (repeated_share_ < worth_it_) {
    unrecorded_.splice(unrecorded_.end(), unrecorded_, seen.place);
    return {};
  }
  recorded_.splice(recorded_.end(), unrecorded_, seen.place);
  if (recorded_.size() > kMostRecordings) forget(*recorded_.front());
  seen.turn = {Launch::Repeated, free_slot(), recordings_++};
  CHECK(static_cast<std::size_t>(seen.turn.slot) < kMostRecordings, seen.turn.slot);
  return {Launch::Recorded, seen.turn.slot, seen.turn.recording};
}

void RepeatedRuns::forget(const Key& key) {
  const auto found = seen_.find(key);
  CHECK(found != seen_.end(), "what is forgotten was never seen", key.size());
  const std::int32_t slot = found->second.turn.slot;
  if (slot >= 0) free_slots_.push_back(slot);
  (slot >= 0 ? recorded_ : unrecorded_).erase(found->second.place);
  seen_.erase(found);
  CHECK(recorded_.size() + unrecorded_.size() == seen_.size(), recorded_.size(), unrecorded_.size(), seen_.size());
}

std::int32_t RepeatedRuns::free_slot() {
  if (free_slots_.empty()) return slots_++;
  const std::int32_t slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

}  // namespace tandem
