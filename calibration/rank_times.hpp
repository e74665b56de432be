// What ranks of one host take to add up numbers together, and to send them to each other: a latency and a bandwidth
// each, fitted to times by size. Must not know how ranks meet.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/rank_group.hpp"
#include "core/machine/profile.hpp"
#include "runtime/executors/collective.hpp"
#include "runtime/executors/device.hpp"

namespace tandem {

struct SizedTime {
  std::int64_t bytes = 0;
  double ns = 0, predicted_ns = 0;
};

struct RankTimes {
  CopyRate peer;                      // from one to another
  double collective_bytes_per_s = 0;  // of a ring; as of HardwareProfile
  std::int64_t collective_latency_ns = 0;
  // By bytes that a rank ends or begins with whole. The rates are fitted to the first two; the others are held out.
  std::vector<SizedTime> sends, all_reduces, reduce_scatters, all_gathers, all_to_alls;
};

// The groups that time_ranks() needs of a rank's collective: all ranks; and the first two, each way.
std::vector<RankGroup> timed_collectives(Rank ranks);
std::vector<RankGroup> timed_transfers();

// Called on all ranks; what it returns is the leading one's, rank 0. `device`: null for ranks that are CPU processes.
// Takes twice `most_bytes` of memory. Throws DeviceError.
RankTimes time_ranks(Collective& collective, Device* device, Rank rank, Rank ranks, std::int64_t most_bytes);

// The latency and the bytes per second of times `latency * steps + bytes * share / rate`, with the least sum of squared
// relative errors. At least two sizes.
struct Line {
  double latency_ns = 0, bytes_per_s = 0;
};
Line fit_line(const std::vector<SizedTime>& times, double steps, double share);

}  // namespace tandem
