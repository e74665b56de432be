#include "core/machine/fabric.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/base/check.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kMany = std::int64_t{1} << 40;

std::int64_t divided_up(std::int64_t count, std::int64_t by) { return (count + by - 1) / by; }

}  // namespace

std::int64_t Topology::most_hosts() const {
  if (!dimensions.empty())
    return std::accumulate(dimensions.begin(), dimensions.end(), std::int64_t{1}, std::multiplies<>());
  if (levels.empty()) return 1;
  const std::int64_t leaf = levels.front().down, cards = std::max<std::int64_t>(nics, 1);
  std::int64_t leaves = 1;
  for (std::size_t i = 1; i < levels.size(); ++i) leaves = std::min(kMany, leaves * levels[i].down);
  return rails ? leaf * (leaves / cards) : leaf * leaves / cards;
}

Fabric::Fabric(const Topology& topology, std::int64_t devices)
    : topology_(&topology), hosts_(divided_up(devices, topology.devices_per_host)) {
  CHECK(devices >= 1 && hosts_ <= std::max<std::int64_t>(topology.most_hosts(), 1), devices, topology.most_hosts());
  switches_a_host_ = divided_up(topology.devices_per_host, topology.devices_per_switch);
  nvlink_ = add(topology.nvlink, hosts_ * topology.devices_per_host);
  pcie_ = add(topology.pcie, hosts_ * topology.devices_per_host);
  pcie_uplink_ = add(topology.pcie_uplink, hosts_ * switches_a_host_);
  nic_ = add(topology.nic, hosts_ * topology.nics);
  if (!topology.dimensions.empty())
    torus_ = add(topology.torus, topology.most_hosts() * static_cast<std::int64_t>(topology.dimensions.size()));
  if (topology.levels.empty()) return;
  const std::int64_t leaf = topology.levels.front().down;
  std::int64_t switches =
      topology.rails ? divided_up(hosts_, leaf) * topology.nics : divided_up(hosts_ * topology.nics, leaf);
  for (std::size_t i = 0; i < topology.levels.size(); ++i) {
    if (i > 0) switches = divided_up(switches, topology.levels[i].down);
    levels_.push_back(add(topology.levels[i].up, switches));
  }
}

Fabric::Kind Fabric::add(const LinkRate& rate, std::int64_t count) {
  const Kind kind{static_cast<std::int32_t>(bytes_per_s_.size()), rate.latency_ns};
  if (rate.is_there()) bytes_per_s_.insert(bytes_per_s_.end(), static_cast<std::size_t>(2 * count), rate.bytes_per_s);
  return kind;
}

void Fabric::go(Route& route, const Kind& kind, std::int64_t number, bool back) {
  route.links.push_back(kind.first + static_cast<std::int32_t>(2 * number + (back ? 1 : 0)));
  if (!back) route.latency_ns += kind.latency_ns;
}

std::int64_t Fabric::card_of(std::int64_t device) const {
  return device % topology_->devices_per_host * topology_->nics / topology_->devices_per_host;
}

std::int64_t Fabric::leaf_of(std::int64_t device) const {
  const std::int64_t down = topology_->levels.front().down, host = host_of(device);
  return topology_->rails ? host / down * topology_->nics + card_of(device)
                          : (host * topology_->nics + card_of(device)) / down;
}

// Between a device and its host's card: `back`, from the card to the device.
void Fabric::leave_device(Route& route, std::int64_t device, bool back) const {
  const auto card = [&] {
    if (topology_->nics > 0) go(route, nic_, host_of(device) * topology_->nics + card_of(device), back);
  };
  if (back) card();
  if (topology_->pcie.is_there()) go(route, pcie_, device, back);
  if (!back) card();
}

// Up to the first switch that both are below, and down.
void Fabric::by_tree(Route& route, std::int64_t from, std::int64_t to) const {
  std::int64_t up = leaf_of(from), down = leaf_of(to);
  std::vector<std::pair<std::size_t, std::int64_t>> way_down;
  for (std::size_t level = 0; up != down; ++level) {
    CHECK(level + 1 < levels_.size(), "hosts that nothing joins", from, to);
    go(route, levels_[level], up, false);
    way_down.emplace_back(level, down);
    up /= topology_->levels[level + 1].down;
    down /= topology_->levels[level + 1].down;
  }
  std::reverse(way_down.begin(), way_down.end());
  for (const auto& [level, number] : way_down) go(route, levels_[level], number, true);
}

// One dimension after another, the shorter way round.
void Fabric::by_torus(Route& route, std::int64_t from, std::int64_t to) const {
  std::int64_t at = host_of(from), stride = 1;
  const std::int64_t goal = host_of(to);
  const auto dimensions = static_cast<std::int64_t>(topology_->dimensions.size());
  for (std::int64_t d = 0; d < dimensions; ++d) {
    const std::int64_t size = topology_->dimensions[static_cast<std::size_t>(d)];
    const std::int64_t ahead = (goal / stride % size - at / stride % size + size) % size;
    const bool back = 2 * ahead > size;
    for (std::int64_t left = back ? size - ahead : ahead; left > 0; --left) {
      const std::int64_t here = at / stride % size;
      // A host's link ahead is its own; the one back is the way back of the neighbour's.
      const std::int64_t next = (here + (back ? size - 1 : 1)) % size;
      const std::int64_t moved = at + (next - here) * stride;
      go(route, torus_, (back ? moved : at) * dimensions + d, back);
      if (back) route.latency_ns += torus_.latency_ns;
      at = moved;
    }
    stride *= size;
  }
}

Fabric::Route Fabric::route(std::int64_t from, std::int64_t to) const {
  CHECK(from != to && from >= 0 && to >= 0, from, to);
  Route route;
  if (host_of(from) != host_of(to)) {
    leave_device(route, from, false);
    topology_->dimensions.empty() ? by_tree(route, from, to) : by_torus(route, from, to);
    leave_device(route, to, true);
    return route;
  }
  if (topology_->nvlink.is_there()) {
    go(route, nvlink_, from, false);
    go(route, nvlink_, to, true);
    return route;
  }
  const std::int64_t of = topology_->devices_per_switch, host = host_of(from) * switches_a_host_;
  const std::int64_t out = from % topology_->devices_per_host / of, in = to % topology_->devices_per_host / of;
  go(route, pcie_, from, false);
  if (out != in) {
    go(route, pcie_uplink_, host + out, false);
    go(route, pcie_uplink_, host + in, true);
  }
  go(route, pcie_, to, true);
  return route;
}

}  // namespace tandem
