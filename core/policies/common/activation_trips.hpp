// The way of activations from the device to the host or the disk and back, ahead of the backward that reads them. On
// the way to the disk the host is a staging area. What a backward comes near to before it has left for the next tier
// stays where it is, and is taken from there. Must not know which policy sends them, nor why.
#pragma once

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/check.hpp"
#include "core/scheduler/policy.hpp"

namespace tandem {

struct Destination {
  Tier tier = Tier::HostPinned;  // or Disk
  // Disk only: so many times what the widest block saves may be on the host at a time, on its way to the disk.
  std::int64_t buffers = 2;
};

// How many backwards ahead of theirs activations come back: of the next to be issued, or of the one that runs. The
// latter takes less memory, where a policy issues few ops ahead.
struct Ahead {
  std::int64_t backwards = 2;
  bool of_running = false;
};

class ActivationTrips {
 public:
  ActivationTrips() = default;
  // Of the layers in `layers`, in order.
  ActivationTrips(std::vector<std::int32_t> layers, Destination destination, Ahead ahead)
      : layers_(std::move(layers)), destination_(destination), ahead_(ahead) {
    CHECK(std::is_sorted(layers_.begin(), layers_.end()), "layers in order", layers_.size());
    CHECK(destination_.tier == Tier::HostPinned || destination_.tier == Tier::Disk, name_of(destination_.tier));
    CHECK(destination_.buffers >= 1 && ahead_.backwards >= 0, destination_.buffers, ahead_.backwards);
  }

  // Sends what is to leave, once the last forward that reads it is issued, and brings it back. To be called after each
  // op that is issued to the compute lane; where it goes to the disk, at the start of each decision, too.
  void move(const View& view, Decisions& decisions);
  // Where the next op has no room, sends what may leave, whether the staging area has room by now or not: the lanes
  // wait for each other.
  void make_room(const View& view, Decisions& decisions);

 private:
  // What a backward reads. A value is on the trip of the first backward that reads it, and on no other.
  struct Trip {
    OpId backward = kNone;
    std::vector<ValueId> values;
    bool returned = false;
  };
  struct Departure {
    ValueId value = kNone;
    OpId after = kNone;  // the last forward that reads it
    OpId backward = kNone;
    std::int64_t bytes = 0;
  };

  void follow(const Graph& graph);
  void add_trip(const Graph& graph, OpId backward);
  void bring_back(const View& view, Decisions& decisions);
  std::size_t backwards_near(const View& view);
  bool bring_back(Decisions& decisions, Trip& trip);
  void send(const View& view, Decisions& decisions);
  bool may_leave(const View& view) const;
  bool leave(Decisions& decisions, bool make_room);
  void drop_written(const View& view, Decisions& decisions);
  void write(const View& view, Decisions& decisions);
  bool write_oldest(Decisions& decisions);
  bool drop_oldest(Decisions& decisions);
  void forget_staged(ValueId value);

  std::vector<std::int32_t> layers_;
  Destination destination_;
  Ahead ahead_;
  OpId seen_ = 0;
  // Of the values that ops of the step in hand read and write.
  struct Known {
    OpId last_forward = kNone;  // that reads or writes it
    bool claimed = false;       // the first reader after the forwards is known
  };
  std::unordered_map<ValueId, Known> known_;
  std::int32_t step_ = kNone;
  std::deque<OpId> backwards_;  // of all layers, not seen to finish, or not issued
  std::deque<Trip> trips_;      // in the order of their backwards
  // In the order of their forwards, each in one of: on the device; on the host, the write to disk not issued; issued.
  std::deque<Departure> waiting_, staged_, writing_;
  std::int64_t staged_bytes_ = 0;  // of the last two
  std::int64_t widest_bytes_ = 0;
};

}  // namespace tandem
