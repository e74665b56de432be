// Collectives as algorithms: rounds of flows between the members of a group, as plain data, and what they load of a
// topology's links. Costs of the classical ones: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication
// Operations in MPICH", 2005; of the double tree: Sanders, Speck, Träff, 2009, as NCCL has it. Must not know graphs,
// nor what else goes by the links.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/machine/fabric.hpp"
#include "core/machine/topology.hpp"

namespace tandem {

enum class CollectiveKind : std::uint8_t { AllReduce, ReduceScatter, AllGather, AllToAll, Shift, Send };
// By the name of an op's body.
CollectiveKind collective_kind(std::string_view body);
// That its rounds share, of those that its kernel counts: an all-reduce's go around a ring twice.
double collective_bytes(CollectiveKind kind, std::int64_t counted);

// What goes at once: from one member of the group to another, by their places in it.
struct Round {
  std::int64_t messages = 1;  // that follow each other, each of which waits for the one before it
  double share = 0;           // of the group's bytes, that each flow has in all its messages
  std::vector<std::pair<std::int32_t, std::int32_t>> flows;
};

// Where members are: those of one host stand in a row, as many on each.
struct Members {
  std::int64_t hosts = 1, on_host = 1;
  std::int64_t rings =
      1;  // network cards of a host that the members have, each the way of a ring, or trees, of its own
  std::int64_t count() const { return hosts * on_host; }
};
// Of one that is there: not Auto. Tree is of all-reduces alone; other kinds take a ring. All-to-alls are pairwise. In a
// shift each sends all that it has to the next one, whatever the algorithm.
std::vector<Round> collective_rounds(CollectiveKind kind, CollectiveAlgorithm algorithm, const Members& members);

// What a round loads.
struct LinkUse {
  std::int32_t link = 0, flows = 0;
  auto operator<=>(const LinkUse&) const = default;
};
struct RoundLoad {
  std::int64_t latency_ns = 0;
  double share = 0;           // of the group's bytes: of each flow
  double bytes_per_s = 0;     // that each flow has where nothing else goes by the links
  std::vector<LinkUse> uses;  // in order of links
  double alone_ns(double bytes) const;
};
using Devices = std::vector<std::int64_t>;  // of a group's members

// Of groups that do the same at the same time, what the first one loads: with all of them on its links.
struct CollectiveLoad {
  std::vector<RoundLoad> rounds;
  bool alike = true;  // each of them finds the same
  double alone_ns(double bytes) const;
};
CollectiveLoad collective_load(const Fabric& fabric, CollectiveKind kind, CollectiveAlgorithm algorithm,
                               std::span<const Devices> alike, double bytes);

// On idle links, of ranks that stand in a row with `on_host` on each host; 0: all on one.
double idle_collective_ns(const Topology& topology, CollectiveKind kind, double bytes, std::int64_t ranks,
                          std::int64_t on_host);

}  // namespace tandem
