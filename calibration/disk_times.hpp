// Rates of the disk tier by block size, with direct I/O, through the runtime's own channel. Must not know profiles.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "calibration/lane_times.hpp"

namespace tandem {

struct DiskTimes {
  std::vector<CopyTime> read, write;  // by size of the transfer
  Summary both_bytes_per_s;           // of one direction's largest transfers beside the other's, together
  std::string note;                   // what differs from direct I/O on this folder; "" if nothing does
};

// Uses a scratch file in `folder`, gone afterwards. Throws DeviceError when the file cannot be made or used.
DiskTimes time_disk(const std::string& folder, bool quick);

}  // namespace tandem
