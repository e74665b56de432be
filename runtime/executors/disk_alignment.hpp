// The alignment that direct I/O wants of offsets, lengths and addresses.
#pragma once

#include <cstdint>

namespace tandem {

// The largest logical block of drives in use; also a page.
inline constexpr std::int64_t kDiskAlignmentBytes = 4096;

constexpr std::int64_t disk_round_down(std::int64_t bytes) { return bytes / kDiskAlignmentBytes * kDiskAlignmentBytes; }
constexpr std::int64_t disk_round_up(std::int64_t bytes) { return disk_round_down(bytes + kDiskAlignmentBytes - 1); }

}  // namespace tandem
