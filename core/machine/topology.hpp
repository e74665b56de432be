// What a host is made of and how hosts are joined: the links that devices share. Every link has as much each way.
// Latencies count once a message, on the way out. Must not know routes (fabric.hpp) or what goes by them.
#pragma once

#include <cstdint>
#include <vector>

namespace tandem {

struct LinkRate {
  double bytes_per_s = 0;  // 0: there is no such link
  std::int64_t latency_ns = 0;
  bool is_there() const { return bytes_per_s > 0; }
};

// Switches of a fat tree's level, each of which stands for all that are wired as one.
struct FatTreeLevel {
  std::int64_t down = 0;   // ports of hosts, or switches of the level below
  LinkRate up;             // of all links of one switch to the level above; none at the top
  std::int64_t links = 0;  // how many these are; 0: as many as oversubscription leaves
};

// As what collectives run (core/machine/collectives.hpp). Auto: ring or tree, whichever takes less alone.
enum class CollectiveAlgorithm : std::uint8_t { Auto, Ring, Tree, HalvingDoubling, Hierarchical };

inline constexpr const char* kTreeLevels[] = {"leaf", "spine", "core"};  // keys of levels, from below

struct Topology {
  std::int64_t devices_per_host = 1;
  // Between devices of a host: each one's links to an NVSwitch; else PCIe to a switch, and from a switch to the others.
  LinkRate nvlink, pcie, pcie_uplink;
  std::int64_t devices_per_switch = 1;
  // Network cards, dealt out to a host's devices in order.
  LinkRate nic;
  std::int64_t nics = 0;
  // Between hosts: one of both. With rails, cards of one number have leaf switches of their own.
  std::vector<FatTreeLevel> levels;
  bool rails = false;
  std::vector<std::int64_t> dimensions;  // of a torus of hosts
  LinkRate torus;                        // to each neighbour
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::Auto;

  bool joins_hosts() const { return !levels.empty() || !dimensions.empty(); }
  // Hosts that there is room for.
  std::int64_t most_hosts() const;
};

}  // namespace tandem
