// The links of a topology for so many devices, and the way that a message takes by them. Must not know what is sent, or
// who else sends.
#pragma once

#include <cstdint>
#include <vector>

#include "core/machine/topology.hpp"

namespace tandem {

class Fabric {
 public:
  // The topology must outlive it. CHECKs that there is room for the devices, which stand in a row, host by host.
  Fabric(const Topology& topology, std::int64_t devices);

  std::int64_t link_count() const { return static_cast<std::int64_t>(bytes_per_s_.size()); }
  double bytes_per_s(std::int32_t link) const { return bytes_per_s_[static_cast<std::size_t>(link)]; }
  std::int64_t host_of(std::int64_t device) const { return device / topology_->devices_per_host; }
  // Of a host's network cards, the device's.
  std::int64_t card_of(std::int64_t device) const;

  struct Route {
    std::vector<std::int32_t> links;
    std::int64_t latency_ns = 0;
  };
  Route route(std::int64_t from, std::int64_t to) const;

 private:
  // Links of one kind, each way: `first` + 2 * number, and the way back after it.
  struct Kind {
    std::int32_t first = 0;
    std::int64_t latency_ns = 0;
  };
  Kind add(const LinkRate& rate, std::int64_t count);
  static void go(Route& route, const Kind& kind, std::int64_t number, bool back);
  void leave_device(Route& route, std::int64_t device, bool back) const;
  void by_tree(Route& route, std::int64_t from, std::int64_t to) const;
  void by_torus(Route& route, std::int64_t from, std::int64_t to) const;
  std::int64_t leaf_of(std::int64_t device) const;

  const Topology* topology_;
  std::int64_t hosts_, switches_a_host_;
  std::vector<double> bytes_per_s_;
  Kind nvlink_, pcie_, pcie_uplink_, nic_, torus_;
  std::vector<Kind> levels_;
};

}  // namespace tandem
