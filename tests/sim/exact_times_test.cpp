// Tiny command lists, all of them: simulated times are those of a second model that shares no code with the simulator
// (R8), to the nanosecond.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "tests/common/fair_lanes.hpp"
#include "tests/sim/sim_world.hpp"

namespace tandem::testing {
namespace {

// Lanes and links of the second model. A rank's bus and device memory are its own, DRAM is the host's.
constexpr Engine kLanes[] = {Engine::Compute, Engine::H2D, Engine::D2H, Engine::CpuOptimizer};
constexpr std::size_t kLaneCount = std::size(kLanes);
constexpr double kBus = 16, kDeviceMemory = 30, kDram = 19;  // bytes/ns, that is GB/s
constexpr std::int64_t kLatencyNs = 137;

HardwareProfile tight_machine() {
  HardwareProfile machine = round_machine();  // copies of 10 GB/s each way
  machine.pcie_bytes_per_s = kBus * 1e9;
  machine.h2d.latency_ns = kLatencyNs;
  memory_rate(machine, Tier::HostPinned) = kDram * 1e9;
  memory_rate(machine, Tier::Device) = kDeviceMemory * 1e9;
  return machine;
}

struct Tiny {
  Rank rank = 0;
  std::size_t lane = 0;
  std::int64_t size = 0;           // ns of an op, bytes of a copy
  std::int64_t traffic = 0;        // bytes of an op
  std::vector<std::size_t> waits;  // commands of the same rank
};

bool is_copy(std::size_t lane) { return kLanes[lane] == Engine::H2D || kLanes[lane] == Engine::D2H; }

// Which command loads what: see sim/truth_model.hpp.
FairCommand fair(const Tiny& command, Fidelity fidelity) {
  const auto rank = static_cast<std::size_t>(command.rank);
  const std::size_t dram = 0, bus = 1 + 2 * rank, device = 2 + 2 * rank;
  const bool shared = fidelity == Fidelity::Shared;
  FairCommand out;
  out.lane = rank * kLaneCount + command.lane;
  out.waits = command.waits;
  const auto size = static_cast<double>(command.size), traffic = static_cast<double>(command.traffic);
  if (is_copy(command.lane)) {
    out.latency_ns = kLanes[command.lane] == Engine::H2D ? kLatencyNs : 0;
    out.flow_ns = std::round(size / 10);
    out.bytes = size;
    out.links = shared ? std::vector{bus, dram, device} : std::vector{bus};
  } else {
    out.flow_ns = size;
    const bool on_device = kLanes[command.lane] == Engine::Compute;
    if (shared) out.bytes = std::min(traffic, size * (on_device ? kDeviceMemory : kDram));
    if (shared) out.links = {on_device ? device : dram};
  }
  return out;
}

struct World {
  Fidelity fidelity = Fidelity::Shared;
  Rank ranks = 1;
  double optimizer_slows_compute = 1;
};

using Times = std::vector<std::pair<std::int64_t, std::int64_t>>;  // begin and end of each command

// Submitted in the given order of the list.
Times simulated(const std::vector<Tiny>& list, const World& with, const std::vector<std::size_t>& order) {
  HardwareProfile machine = tight_machine();
  machine.interference[{Engine::Compute, Engine::CpuOptimizer}] = with.optimizer_slows_compute;
  SimWorld world(machine, with.fidelity, with.ranks);
  std::vector<CommandId> ids(list.size(), kNoCommand);
  for (const std::size_t i : order) {
    const Tiny& command = list[i];
    std::vector<CommandId> waits;
    for (std::size_t w : command.waits) waits.push_back(ids[w]);
    const Engine lane = kLanes[command.lane];
    ids[i] = is_copy(command.lane) ? world.copy(lane, command.size, waits, command.rank)
                                   : world.run(lane, command.size, waits, command.rank, command.traffic);
  }
  world.drain();
  Times times;
  for (std::size_t i = 0; i < list.size(); ++i)
    times.emplace_back(world.started(ids[i], list[i].rank), world.finished(ids[i], list[i].rank));
  return times;
}

std::vector<std::size_t> as_written(const std::vector<Tiny>& list) {
  std::vector<std::size_t> order(list.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

std::vector<FairTimes> by_second_model(const std::vector<Tiny>& list, const World& with) {
  std::vector<double> rates{kDram};
  for (Rank r = 0; r < with.ranks; ++r) rates.insert(rates.end(), {kBus, kDeviceMemory});
  const std::size_t lanes = kLaneCount * static_cast<std::size_t>(with.ranks);
  std::vector<std::vector<double>> slow_down(lanes, std::vector<double>(lanes, 1));
  for (std::size_t r = 0; r < lanes; r += kLaneCount) slow_down[r][r + kLaneCount - 1] = with.optimizer_slows_compute;
  std::vector<FairCommand> commands;
  for (const Tiny& command : list) commands.push_back(fair(command, with.fidelity));
  return FairLanes(commands, rates, slow_down).run();
}

// The largest difference of any begin or end, in ns.
double difference(const std::vector<Tiny>& list, const World& with) {
  const Times found = simulated(list, with, as_written(list));
  const std::vector<FairTimes> expected = by_second_model(list, with);
  double most = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    most = std::max(most, std::abs(static_cast<double>(found[i].first) - expected[i].started_ns));
    most = std::max(most, std::abs(static_cast<double>(found[i].second) - expected[i].finished_ns));
  }
  return most;
}

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  std::int64_t operator()(std::int64_t below) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(below));
  }

 private:
  std::mt19937_64 random_;
};

std::vector<Tiny> random_list(Draw& draw, Rank ranks) {
  std::vector<Tiny> list;
  for (std::size_t i = 0; i < 12; ++i) {
    Tiny command;
    command.rank = static_cast<Rank>(draw(ranks));
    command.lane = static_cast<std::size_t>(draw(kLaneCount));
    command.size = draw(8) == 0 ? 0 : 1 + draw(is_copy(command.lane) ? 40'000 : 4'000);
    if (command.size % 10 == 5) ++command.size;  // half a nanosecond would round either way
    command.traffic = draw(2) == 0 ? 0 : 2 * command.size + draw(30 * command.size + 1);
    for (std::size_t w = 0; w < i; ++w)
      if (draw(5) == 0 && list[w].rank == command.rank) command.waits.push_back(w);
    list.push_back(command);
  }
  return list;
}

World random_world(Draw& draw, Rank ranks) {
  return {draw(2) ? Fidelity::Alone : Fidelity::Shared, ranks, draw(2) ? 1 : 1.5};
}

// Another order in which the same can be submitted: what waits comes after what it waits for, and each lane keeps its
// own.
std::vector<std::size_t> other_order(Draw& draw, const std::vector<Tiny>& list) {
  std::vector<std::size_t> order;
  std::vector<bool> taken(list.size());
  while (order.size() < list.size()) {
    const auto at = static_cast<std::size_t>(draw(static_cast<std::int64_t>(list.size())));
    bool may = !taken[at];
    for (std::size_t w : list[at].waits) may = may && taken[w];
    for (std::size_t before = 0; before < at; ++before)
      if (list[before].lane == list[at].lane && list[before].rank == list[at].rank) may = may && taken[before];
    if (!may) continue;
    taken[at] = true;
    order.push_back(at);
  }
  return order;
}

// Half a nanosecond is the rounding of what is reported; SimGrid's clock has steps of 1/256 ns, a few to a command.
constexpr double kNanosecond = 0.5 + 12 * 2.0 / 256;

// Every list of four commands: every lane for each, and every set of earlier commands that it waits for.
TEST(ExactTimes, OfEveryListOfFourCommandsAreThoseOfASecondModel) {
  constexpr std::int64_t kOpNs[] = {1'000, 1'500, 700, 2'300}, kCopyBytes[] = {9'000, 21'000, 14'000, 6'000};
  int lists = 0;
  double most = 0;
  for (unsigned lanes = 0; lanes < 256; ++lanes)
    for (unsigned waits = 0; waits < 64; ++waits) {
      std::vector<Tiny> list;
      for (unsigned i = 0, bit = 0; i < 4; ++i) {
        Tiny command;
        command.lane = lanes >> (2 * i) & 3;
        command.size = is_copy(command.lane) ? kCopyBytes[i] : kOpNs[i];
        command.traffic = 20 * kOpNs[i];
        for (unsigned before = 0; before < i; ++before, ++bit)
          if (waits >> bit & 1) command.waits.push_back(before);
        list.push_back(command);
      }
      const double off = difference(list, {.fidelity = lanes % 2 ? Fidelity::Alone : Fidelity::Shared});
      ASSERT_LE(off, kNanosecond) << "lanes " << lanes << " waits " << waits;
      most = std::max(most, off);
      ++lists;
    }
  std::printf("%d lists of 4 commands, at most %.3f ns apart\n", lists, most);
}

TEST(ExactTimes, OfTwoRanksWithTwelveCommandsAreThoseOfASecondModel) {
  Draw draw(5);
  double most = 0;
  constexpr int kLists = 5'000;
  for (int turn = 0; turn < kLists; ++turn) {
    const Rank ranks = 1 + turn % 2;
    const std::vector<Tiny> list = random_list(draw, ranks);
    const double off = difference(list, random_world(draw, ranks));
    ASSERT_LE(off, kNanosecond) << turn;
    most = std::max(most, off);
  }
  std::printf("%d lists of 12 commands, at most %.3f ns apart\n", kLists, most);
}

// What begins at one moment may be submitted in any order (R5), though the ids differ.
TEST(ExactTimes, DoNotDependOnTheOrderInWhichLanesAreGivenTheirCommands) {
  Draw draw(6);
  int others = 0;
  for (int turn = 0; turn < 4'000; ++turn) {
    const Rank ranks = 1 + turn % 2;
    std::vector<Tiny> list = random_list(draw, ranks);
    // Many equal ones, so that much begins and ends at one moment.
    for (Tiny& command : list)
      if (turn % 4 < 2) command.size = is_copy(command.lane) ? 20'000 : 2'000;
    const World world = random_world(draw, ranks);
    const auto order = other_order(draw, list);
    others += order != as_written(list) ? 1 : 0;
    ASSERT_EQ(simulated(list, world, order), simulated(list, world, as_written(list))) << turn;
  }
  EXPECT_GT(others, 3'000);
}

// A link that the second model does not know is seen.
TEST(ExactTimes, ASecondModelWithoutTheBusIsSeenToDiffer) {
  std::vector<Tiny> list(2);
  list[0].lane = 1, list[1].lane = 2;
  list[0].size = list[1].size = 20'000;
  const World world;
  EXPECT_LE(difference(list, world), kNanosecond);
  std::vector<FairCommand> commands;
  for (const Tiny& command : list) commands.push_back(fair(command, Fidelity::Shared)), commands.back().links = {0};
  const std::vector<FairTimes> expected = FairLanes(commands, {1e9}).run();
  EXPECT_GT(static_cast<double>(simulated(list, world, {0, 1})[1].second) - expected[1].finished_ns, 100);
}

}  // namespace
}  // namespace tandem::testing
