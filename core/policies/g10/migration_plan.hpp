// Which values leave the device in which of their inactive periods, where they go, and when they return: the smart
// tensor migrations of G10 (Zhang et al., MICRO 2023, sections 4.3 and 4.4). Must not know graphs, nor what happened.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/policies/g10/inactive_periods.hpp"
#include "core/scheduler/seam.hpp"

namespace tandem {

// What values may take: of the device all together, of the host those that have left.
struct Room {
  std::int64_t device_bytes = 0, host_bytes = 0;
  bool disk = false;
};

struct Migration {
  InactivePeriod period;
  Tier to = Tier::HostPinned;
  std::int32_t gone = 0;  // the last op that may still find it on the device
  std::int32_t back = 0;  // the op at whose begin it sets out again; the step's length or more: of the next step
};

struct MigrationPlan {
  std::vector<Migration> migrations;
  std::vector<std::int64_t> live_bytes;  // on the device while each op runs
  std::vector<std::int64_t> host_bytes;  // of what has left to the host, meanwhile

  bool fits(const Room& room) const {
    return std::all_of(live_bytes.begin(), live_bytes.end(), [&](std::int64_t b) { return b <= room.device_bytes; });
  }
};

// Takes the period of most benefit for its cost, again and again, until all ops fit or nothing helps. The benefit is
// the time for which a value is away while the device is overfull, by as many bytes as it relieves it of; the cost, the
// time that its ways take of lanes. A value leaves as soon as it may: to the disk, or, where others are on that way
// then or it could not be back, to the host while that has room. It returns as late as it may, and then as much earlier
// as there is room on the device. A period in which it could not go and be back is left out, so that no estimated step
// is made longer. Persistent tensors go to one tier in all of their periods, and own their place there.
//
// Where that is too little, a step will wait, and is planned anew: ways need not hide, values leave to the host alone,
// or, where it cannot hold them, to the disk as long as it could bring them back in time, and else to the host.
//
// Where the host has room for all that could leave, this makes a step fit whenever any set of periods would.
// Where it has not, worth alone decides who has its room, and one in sixteen tiny steps that could fit does not by plan
// (ExactChoices.G10s...): the scheduler then evicts at need.
MigrationPlan plan_migrations(const StepUse& step, const CostModel& estimate, const Room& room);

}  // namespace tandem
