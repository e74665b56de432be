// The links of a rank are those that its commands use, and the other side of each has it, too.
#include "runtime/rank_links.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>

#include "tests/common/scenarios.hpp"

namespace tandem {
namespace {

struct Links {
  std::int64_t stages = 2, chunks = 1, copies = 1, servers = 0;
  bool tied = false;
  std::map<Rank, std::set<Rank>> peers;  // to whom a rank sends
};

Scenario scenario_of(const Links& of) {
  Scenario s = testing::gpt_scenario("resident", std::int64_t{256} << 20, 8);
  s.workload.keys["tied_embedding"] = of.tied;
  s.workload.micro_batches = 4;
  s.workload.devices = of.copies;
  s.workload.parallel["servers"] = of.servers;
  s.parallel = {.pipeline = of.stages, .chunks = of.chunks, .schedule = of.chunks > 1 ? "interleaved" : "1f1b"};
  return s;
}

TEST(RankLinks, AreOfThoseWhoSend) {
  const Links kinds[] = {
      {.peers = {{0, {1}}, {1, {0}}}},
      {.stages = 4, .peers = {{0, {1}}, {1, {0, 2}}, {2, {1, 3}}, {3, {2}}}},
      {.stages = 4, .tied = true, .peers = {{0, {1, 3}}, {1, {0, 2}}, {2, {1, 3}}, {3, {0, 2}}}},
      {.stages = 4, .chunks = 2, .peers = {{0, {1, 3}}, {1, {0, 2}}, {2, {1, 3}}, {3, {0, 2}}}},
      {.stages = 1, .copies = 2, .servers = 2, .peers = {{0, {2, 3}}, {1, {2, 3}}, {2, {0, 1}}, {3, {0, 1}}}},
      {.stages = 1, .copies = 2, .peers = {{0, {}}, {1, {}}}}};
  for (const Links& of : kinds) {
    SCOPED_TRACE(std::to_string(of.stages) + " stages, " + std::to_string(of.servers) + " servers");
    const Scenario scenario = scenario_of(of);
    const CostModel estimate(scenario.machine);
    std::map<Rank, std::set<Rank>> peers;
    std::map<std::int32_t, int> sides;
    for (Rank rank = 0; rank < rank_count(scenario); ++rank) {
      peers[rank];
      for (const RankGroup& link : links_of(scenario, estimate, rank)) {
        ++sides[link.number];
        if (link.members.front() == rank) peers[rank].insert(link.members.back());
      }
    }
    EXPECT_EQ(peers, of.peers);
    for (const auto& [number, count] : sides) EXPECT_EQ(count, 2) << number;
  }
}

}  // namespace
}  // namespace tandem
