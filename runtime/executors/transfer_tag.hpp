// By which number a send and its receive know each other. Between two ranks several are under way at once, each kind as
// a group of its own, by numbers in a row (transfer_group in core/scenario/ranks.hpp). Must not know ranks.
#pragma once

#include <cstdint>

namespace tandem {

inline constexpr std::int32_t kTransferKinds = 4;
// Of a transfer's group, or of its tag.
constexpr std::int32_t transfer_kind(std::int32_t number) { return number % kTransferKinds; }
constexpr std::int32_t transfer_tag(std::int32_t group, std::int32_t sequence) {
  constexpr std::int32_t kMost = (1 << 28) - 1;
  return kTransferKinds * (sequence & kMost) + transfer_kind(group);
}

// Of what goes round a ring: behind all of those.
inline constexpr std::int32_t kShiftTag = std::int32_t{1} << 30;

}  // namespace tandem
