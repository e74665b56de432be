// The links by which ranks reach each other, as SimGrid's. Must not know what goes by them.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "core/machine/collectives.hpp"
#include "sim/simgrid_slots.hpp"

namespace tandem {

// A route of SimGrid's is for ever, and has a pair of ends of its own. A link that several flows of a round go by
// stands in it as often, so that it weighs as much.
struct SimgridNetwork {
  sg::NetZone* zone = nullptr;
  std::vector<SharedLink> links;
  std::vector<sg::Host*> sources, targets;
  std::map<std::vector<LinkUse>, RouteSlot> routes;
  std::map<int, LaneSlot> flows;  // by lane: one at a time

  void build(sg::NetZone* root, int link_count);
  RouteSlot& route(std::span<const LinkUse> uses);
  LaneSlot& flow(int lane) {
    LaneSlot& slot = flows[lane];
    slot.lane = lane;
    return slot;
  }
};

}  // namespace tandem
