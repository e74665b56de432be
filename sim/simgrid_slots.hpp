// Links that flows share, the routes over them, and the flow under way on each lane: what SimgridPlatform keeps of its
// SimGrid objects. Must not know profiles or ranks.
#pragma once

#include <array>
#include <functional>
#include <limits>
#include <queue>
#include <vector>

#include "sim/simgrid_compat.hpp"
#include "sim/truth_model.hpp"

namespace tandem {
namespace sg = simgrid::s4u;

inline constexpr double kRateStep = 1e-9;  // of rates around 1 to 1e7 units/ns
inline constexpr double kNoLimit = 1e18;   // units/ns: never binds

struct LaneSlot;

// What several lanes load.
struct SharedLink {
  struct Flow {
    LaneSlot* slot = nullptr;
    double times = 1;  // that it goes by the link
  };
  sg::Link* link = nullptr;
  double limit = kNoLimit;  // units/ns
  std::vector<Flow> flows;  // under way

  void set_limit(double rate) {
    if (rate != limit) link->set_bandwidth(rate);
    limit = rate;
  }
  // Whether each flow goes as fast as if it were alone here.
  bool has_room_for_all() const;
};

struct RouteSlot {
  struct Use {
    SharedLink* link = nullptr;
    double times = 1;
  };
  sg::Host* source = nullptr;  // null: the lane's
  sg::Host* target = nullptr;  // null where the lane has no such route
  std::vector<Use> links;
};

struct LaneSlot {
  int lane = -1;  // of the run that borrows it
  sg::Host* source = nullptr;
  sg::Link* own = nullptr;  // null: nothing limits it but what it shares
  double own_bandwidth = kNoLimit;
  std::array<RouteSlot, kRouteCount> routes;
  // The flow under way.
  RouteSlot* route = nullptr;  // null: there is none
  sg::CommPtr simulated;       // null: SimGrid does not know it. Kept: SimGrid crashes when the last reference goes
  double units = 0, rate = 0;  // rate: alone, in units/ns
  double limit = 0;            // what its own lane gives it now
  double began_ns = 0, alone_end_ns = 0;
  std::int64_t changes = 0;  // grows when it begins, when SimGrid hears of it, and when it ends
};

// Moments of flows, soonest first; those that a flow's later changes made void are passed over.
class FlowTimes {
 public:
  void add(LaneSlot& slot, double at_ns) { times_.push({at_ns, &slot, slot.changes}); }
  double next_ns() {
    while (!times_.empty() && times_.top().changes != times_.top().slot->changes) times_.pop();
    return times_.empty() ? std::numeric_limits<double>::infinity() : times_.top().at_ns;
  }
  LaneSlot& next() const { return *times_.top().slot; }  // after next_ns()
  void clear() { times_ = {}; }

 private:
  struct Time {
    double at_ns = 0;
    LaneSlot* slot = nullptr;
    std::int64_t changes = 0;
    bool operator>(const Time& other) const { return at_ns > other.at_ns; }
  };
  std::priority_queue<Time, std::vector<Time>, std::greater<>> times_;
};

inline bool SharedLink::has_room_for_all() const {
  double wanted = 0;
  for (const Flow& flow : flows) wanted += flow.times * flow.slot->limit;
  return wanted * (1 + kRateStep) <= limit;
}

}  // namespace tandem
