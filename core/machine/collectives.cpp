#include "core/machine/collectives.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "core/base/check.hpp"

namespace tandem {
namespace {

constexpr double kNsPerS = 1e9;

std::int32_t narrow(std::int64_t place) { return static_cast<std::int32_t>(place); }

// Steps around a ring: an all-reduce goes twice.
std::int64_t turns(CollectiveKind kind) { return kind == CollectiveKind::AllReduce ? 2 : 1; }

// The place after a member's in ring `ring`. Within a host a ring enters at one card's member and leaves at another's;
// every other host goes through its members backwards, so that what leaves by a card arrives at one of its number.
std::int64_t next_in_ring(const Members& m, std::int64_t ring, std::int64_t place) {
  const std::int64_t host = place / m.on_host, local = place % m.on_host;
  const bool backwards = host % 2 == 1;
  const std::int64_t first = ring * m.on_host / m.rings, last = (first + m.on_host - 1) % m.on_host;
  if (local == (backwards ? first : last)) {
    const std::int64_t next = (host + 1) % m.hosts;
    return next * m.on_host + (next % 2 == 1 ? last : first);
  }
  return host * m.on_host + (local + (backwards ? m.on_host - 1 : 1)) % m.on_host;
}

Round ring(const Members& m, std::int64_t turn_count) {
  const std::int64_t p = m.count();
  Round round{turn_count * (p - 1), static_cast<double>(turn_count * (p - 1)) / static_cast<double>(p * m.rings), {}};
  for (std::int64_t r = 0; r < m.rings; ++r)
    for (std::int64_t place = 0; place < p; ++place)
      round.flows.emplace_back(narrow(place), narrow(next_in_ring(m, r, place)));
  return round;
}

// Of a binary tree whose leaves are the odd places.
std::int64_t parent(std::int64_t place, std::int64_t p) {
  const std::int64_t bit = place & -place;
  const std::int64_t up = (place ^ bit) | (bit << 1);
  return up < p ? up : place ^ bit;
}

// Two trees with half of the bytes each, in which leaves of the one are inner places of the other: so that each member
// sends and receives all bytes once on the way up, and once on the way down. Of hosts with several cards, a pair of
// trees for each, between other members of the hosts.
std::vector<Round> tree(const Members& m) {
  const std::int64_t p = m.count(), depth = std::bit_width(static_cast<std::uint64_t>(p - 1));
  const double share = 0.5 / static_cast<double>(m.rings);
  Round up{depth, share, {}}, down{depth, share, {}};
  const auto mirrored = [&](std::int64_t place) { return p % 2 == 0 ? p - 1 - place : (place + 1) % p; };
  for (std::int64_t r = 0; r < m.rings; ++r) {
    const auto turned = [&](std::int64_t place) {
      return narrow(place / m.on_host * m.on_host + (place + r * m.on_host / m.rings) % m.on_host);
    };
    for (std::int64_t place = 1; place < p; ++place) {
      const std::int64_t above = parent(place, p);
      up.flows.emplace_back(turned(place), turned(above));
      up.flows.emplace_back(turned(mirrored(place)), turned(mirrored(above)));
    }
  }
  for (const auto& [from, to] : up.flows) down.flows.emplace_back(to, from);
  return {up, down};
}

// Of a power of two; further members hand theirs to others before, and take the result after it (Thakur et al., 2005).
std::vector<Round> halving_doubling(CollectiveKind kind, std::int64_t p) {
  const auto all = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(p)));
  std::vector<Round> halving;
  for (std::int64_t distance = all / 2; distance >= 1; distance /= 2) {
    Round round{1, static_cast<double>(distance) / static_cast<double>(all), {}};
    for (std::int64_t place = 0; place < all; ++place)
      round.flows.emplace_back(narrow(place), narrow(place ^ distance));
    halving.push_back(std::move(round));
  }
  Round before{1, 1, {}}, after{1, 1, {}};
  for (std::int64_t place = all; place < p; ++place) {
    before.flows.emplace_back(narrow(place), narrow(place - all));
    after.flows.emplace_back(narrow(place - all), narrow(place));
  }
  std::vector<Round> rounds;
  if (p > all) rounds.push_back(before);
  if (kind != CollectiveKind::AllGather) rounds.insert(rounds.end(), halving.begin(), halving.end());
  if (kind != CollectiveKind::ReduceScatter) rounds.insert(rounds.end(), halving.rbegin(), halving.rend());
  if (p > all) rounds.push_back(after);
  return rounds;
}

// Within hosts, then of each host's member of one number across them with its part of the bytes, then within again.
std::vector<Round> hierarchical(CollectiveKind kind, const Members& m) {
  const Members within{1, m.on_host, 1}, across{m.hosts, 1, 1};
  std::vector<Round> rounds;
  const auto inside = [&] {
    if (m.on_host == 1) return;
    const Round one = ring(within, 1);
    Round round{one.messages, one.share, {}};
    for (std::int64_t host = 0; host < m.hosts; ++host)
      for (const auto& [from, to] : one.flows)
        round.flows.emplace_back(narrow(host * m.on_host + from), narrow(host * m.on_host + to));
    rounds.push_back(std::move(round));
  };
  if (kind != CollectiveKind::AllGather) inside();
  if (m.hosts > 1) {
    const Round one = ring(across, turns(kind));
    Round round{one.messages, one.share / static_cast<double>(m.on_host), {}};
    for (std::int64_t local = 0; local < m.on_host; ++local)
      for (const auto& [from, to] : one.flows)
        round.flows.emplace_back(narrow(from * m.on_host + local), narrow(to * m.on_host + local));
    rounds.push_back(std::move(round));
  }
  if (kind != CollectiveKind::ReduceScatter) inside();
  return rounds;
}

std::vector<Round> all_to_all(std::int64_t p) {
  std::vector<Round> rounds;
  for (std::int64_t step = 1; step < p; ++step) {
    Round& round = rounds.emplace_back(Round{1, 1 / static_cast<double>(p), {}});
    for (std::int64_t place = 0; place < p; ++place)
      round.flows.emplace_back(narrow(place), narrow((place + step) % p));
  }
  return rounds;
}

std::vector<Round> shift(std::int64_t p) {
  Round round{1, 1, {}};
  for (std::int64_t place = 0; place < p; ++place) round.flows.emplace_back(narrow(place), narrow((place + 1) % p));
  return {round};
}

// In a row where hosts have different numbers of them.
Members members_of(const Fabric& fabric, const Devices& devices) {
  std::map<std::int64_t, std::int64_t> by_host;
  std::set<std::int64_t> cards;
  const std::int64_t first = fabric.host_of(devices.front());
  for (const std::int64_t device : devices) {
    ++by_host[fabric.host_of(device)];
    if (fabric.host_of(device) == first) cards.insert(fabric.card_of(device));
  }
  const std::int64_t on_host = by_host.begin()->second;
  const bool even = std::all_of(by_host.begin(), by_host.end(), [&](const auto& h) { return h.second == on_host; });
  if (!even) return {static_cast<std::int64_t>(devices.size()), 1, 1};
  const auto hosts = static_cast<std::int64_t>(by_host.size());
  return {hosts, on_host, hosts == 1 ? 1 : static_cast<std::int64_t>(cards.size())};
}

// Flows by link, of those that have some.
class Loads {
 public:
  explicit Loads(const Fabric& fabric) : flows_(static_cast<std::size_t>(fabric.link_count())) {}
  void add(std::int32_t link, std::int32_t flows) {
    std::int32_t& count = flows_[static_cast<std::size_t>(link)];
    if (count == 0) links_.push_back(link);
    count += flows;
  }
  std::int32_t of(std::int32_t link) const { return flows_[static_cast<std::size_t>(link)]; }
  const std::vector<std::int32_t>& links() const { return links_; }

 private:
  std::vector<std::int32_t> flows_, links_;
};

struct GroupRound {
  std::vector<LinkUse> uses;
  std::int64_t latency_ns = 0;
};

GroupRound load_of(const Fabric& fabric, const Round& round, const Devices& devices) {
  GroupRound out;
  Loads loads(fabric);
  for (const auto& [from, to] : round.flows) {
    const Fabric::Route route =
        fabric.route(devices[static_cast<std::size_t>(from)], devices[static_cast<std::size_t>(to)]);
    for (const std::int32_t link : route.links) loads.add(link, 1);
    out.latency_ns = std::max(out.latency_ns, route.latency_ns);
  }
  out.latency_ns *= round.messages;
  for (const std::int32_t link : loads.links()) out.uses.push_back({link, loads.of(link)});
  std::sort(out.uses.begin(), out.uses.end());
  return out;
}

// What tells groups apart: their links' rates, and who goes by them.
using Shape = std::vector<std::tuple<double, std::int32_t, std::int32_t>>;
Shape shape_of(const Fabric& fabric, const GroupRound& own, const Loads& all) {
  Shape shape;
  for (const LinkUse& use : own.uses) shape.emplace_back(fabric.bytes_per_s(use.link), use.flows, all.of(use.link));
  std::sort(shape.begin(), shape.end());
  return shape;
}

CollectiveLoad load_of(const Fabric& fabric, std::span<const Devices> alike, const std::vector<Round>& rounds) {
  CollectiveLoad out;
  for (const Round& round : rounds) {
    std::vector<GroupRound> groups;
    Loads all(fabric);
    for (const Devices& devices : alike) {
      groups.push_back(load_of(fabric, round, devices));
      for (const LinkUse& use : groups.back().uses) all.add(use.link, use.flows);
    }
    const GroupRound& first = groups.front();
    const Shape shape = groups.size() > 1 ? shape_of(fabric, first, all) : Shape();
    for (std::size_t i = 1; i < groups.size(); ++i)
      if (groups[i].latency_ns != first.latency_ns || shape_of(fabric, groups[i], all) != shape) out.alike = false;
    RoundLoad load{first.latency_ns, round.share, 0, {}};
    for (const LinkUse& use : first.uses) {
      load.uses.push_back({use.link, all.of(use.link)});
      const double each = fabric.bytes_per_s(use.link) / all.of(use.link);
      if (load.bytes_per_s == 0 || each < load.bytes_per_s) load.bytes_per_s = each;
    }
    out.rounds.push_back(std::move(load));
  }
  return out;
}

}  // namespace

CollectiveKind collective_kind(std::string_view body) {
  if (body == "send" || body == "receive") return CollectiveKind::Send;
  if (body.starts_with("all_reduce")) return CollectiveKind::AllReduce;
  if (body.starts_with("all_to_all")) return CollectiveKind::AllToAll;
  if (body == "shift") return CollectiveKind::Shift;
  return body.starts_with("reduce_scatter") ? CollectiveKind::ReduceScatter : CollectiveKind::AllGather;
}

double collective_bytes(CollectiveKind kind, std::int64_t counted) {
  return static_cast<double>(counted) / (kind == CollectiveKind::AllReduce ? 2 : 1);
}

std::vector<Round> collective_rounds(CollectiveKind kind, CollectiveAlgorithm algorithm, const Members& members) {
  CHECK(members.count() >= 2 && algorithm != CollectiveAlgorithm::Auto, members.hosts, members.on_host);
  if (kind == CollectiveKind::Send) return {{1, 1, {{0, 1}}}};
  if (kind == CollectiveKind::AllToAll) return all_to_all(members.count());
  if (kind == CollectiveKind::Shift) return shift(members.count());
  switch (algorithm) {
    case CollectiveAlgorithm::HalvingDoubling:
      return halving_doubling(kind, members.count());
    case CollectiveAlgorithm::Hierarchical:
      return hierarchical(kind, members);
    case CollectiveAlgorithm::Tree:
      if (kind == CollectiveKind::AllReduce) return tree(members);
      [[fallthrough]];
    default:
      return {ring(members, turns(kind))};
  }
}

double RoundLoad::alone_ns(double bytes) const {
  return static_cast<double>(latency_ns) + share * bytes / bytes_per_s * kNsPerS;
}

double CollectiveLoad::alone_ns(double bytes) const {
  double ns = 0;
  for (const RoundLoad& round : rounds) ns += round.alone_ns(bytes);
  return ns;
}

CollectiveLoad collective_load(const Fabric& fabric, CollectiveKind kind, CollectiveAlgorithm algorithm,
                               std::span<const Devices> alike, double bytes) {
  CHECK(!alike.empty() && alike.front().size() >= 2, alike.size());
  const Members members = members_of(fabric, alike.front());
  const auto load = [&](CollectiveAlgorithm with) {
    return load_of(fabric, alike, collective_rounds(kind, with, members));
  };
  if (algorithm != CollectiveAlgorithm::Auto) return load(algorithm);
  CollectiveLoad by_ring = load(CollectiveAlgorithm::Ring);
  if (kind != CollectiveKind::AllReduce) return by_ring;
  CollectiveLoad by_tree = load(CollectiveAlgorithm::Tree);
  return by_tree.alone_ns(bytes) < by_ring.alone_ns(bytes) ? by_tree : by_ring;
}

double idle_collective_ns(const Topology& topology, CollectiveKind kind, double bytes, std::int64_t ranks,
                          std::int64_t on_host) {
  const std::int64_t host = topology.devices_per_host;
  const bool together = on_host == 0 || on_host >= ranks;
  const std::int64_t apart = together ? 1 : std::max<std::int64_t>(host / on_host, 1);
  Devices devices;
  for (std::int64_t i = 0; i < ranks; ++i)
    devices.push_back(together ? i : i / on_host * host + std::min(i % on_host * apart, host - 1));
  const Fabric fabric(topology, devices.back() + 1);
  return collective_load(fabric, kind, topology.algorithm, {&devices, 1}, bytes).alone_ns(bytes);
}

}  // namespace tandem
