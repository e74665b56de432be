// Which commands run the same work on the same bytes as one before them: a device that keeps what it launched for an op
// can start such a command with one call. One book for both worlds, so that the simulator knows which launches a live
// run saves. Must not know devices or bodies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <vector>

#include "core/graph/graph.hpp"
#include "core/scheduler/seam.hpp"

namespace tandem {

class RepeatedRuns {
 public:
  // A recording of a block's kernels takes 150 kB of an H200's memory, outside of the arena.
  static constexpr std::size_t kMostRecordings = 512, kMostSeen = 8192;

  enum class Launch : std::uint8_t { Afresh, Recorded, Repeated };
  struct Turn {
    Launch launch = Launch::Afresh;
    std::int32_t slot = -1;      // of the recording, below kMostRecordings; -1 where it is launched afresh
    std::int64_t recording = 0;  // which one of those that the slot has held
  };
  // To be asked for each command in the order in which the device gets them. Recorded is what comes again, in a run
  // most of whose commands do: to record takes several times as long as to launch, and where places come again by
  // chance it does not pay. A full book forgets what has not come for longest.
  Turn next(WorkId work, const Command& command);
  // The least share of commands that come again, of late, for one to be recorded: 0 is always, above 1 never.
  void record_from(double share) { worth_it_ = share; }

 private:
  using Key = std::vector<std::int64_t>;
  struct Seen {
    Turn turn;
    std::list<const Key*>::iterator place;
  };
  void forget(const Key& key);
  std::int32_t free_slot();

  std::map<Key, Seen> seen_;
  // Least recently used first.
  std::list<const Key*> unrecorded_, recorded_;
  std::vector<std::int32_t> free_slots_;
  std::int32_t slots_ = 0;
  double worth_it_ = 0.75;     // in steps that repeat themselves it is 1; where much moves, up to 0.6 was seen
  double repeated_share_ = 0;  // of late
  std::int64_t recordings_ = 0;
};

}  // namespace tandem
