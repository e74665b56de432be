#include "sim/simgrid_network.hpp"

#include <algorithm>
#include <string>

#include "core/base/check.hpp"

namespace tandem {
namespace {

constexpr int kRoomNetworkLinks = 256, kRoomNetworkEnds = 24, kNetworkEnds = 256;  // ends each way

}  // namespace

void SimgridNetwork::build(sg::NetZone* root, int link_count) {
  zone = simgrid_compat::make_zone(root, "network");
  links.resize(static_cast<std::size_t>(std::max(link_count, kRoomNetworkLinks)));
  for (std::size_t i = 0; i < links.size(); ++i)
    links[i].link = simgrid_compat::make_link(zone, "network_link" + std::to_string(i), kNoLimit);
  const int ends = link_count > 0 ? kNetworkEnds : kRoomNetworkEnds;
  for (int i = 0; i < ends; ++i) {
    sources.push_back(simgrid_compat::make_host(zone, "network_from" + std::to_string(i), 1));
    targets.push_back(simgrid_compat::make_host(zone, "network_to" + std::to_string(i), 1));
  }
  zone->seal();
}

RouteSlot& SimgridNetwork::route(std::span<const LinkUse> uses) {
  const auto [found, fresh] = routes.try_emplace({uses.begin(), uses.end()});
  RouteSlot& slot = found->second;
  if (!fresh) return slot;
  const std::size_t number = routes.size() - 1;
  CHECK(number < sources.size() * targets.size(), "more ways through the network than there is room for", number);
  slot.source = sources[number / targets.size()];
  slot.target = targets[number % targets.size()];
  std::vector<const sg::Link*> by;
  for (const LinkUse& use : uses) {
    SharedLink& link = links[static_cast<std::size_t>(use.link)];
    slot.links.push_back({&link, static_cast<double>(use.flows)});
    by.insert(by.end(), static_cast<std::size_t>(use.flows), link.link);
  }
  simgrid_compat::make_route(zone, slot.source, slot.target, by);
  return slot;
}

}  // namespace tandem
