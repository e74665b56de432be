// Parameter servers for real: workers beside processes that have the states train as data-parallel ranks do, to the
// bit.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/scenario/ranks.hpp"
#include "core/workloads/workload.hpp"
#include "runtime/rank_processes.hpp"
#include "runtime/torch_setup.hpp"
#include "runtime/train.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/runtime/rank_bits.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

struct Servers {
  std::string family = "gpt", precision = "fp32";
  std::int64_t workers = 2, servers = 1, micro_batches = 1;
};

std::vector<std::string> arguments_of(const Servers& s) {
  return {"--family=" + s.family, "--precision=" + s.precision, "--workers=" + std::to_string(s.workers),
          "--servers=" + std::to_string(s.servers), "--micro=" + std::to_string(s.micro_batches)};
}

Servers from_arguments() {
  return {argument("family"), argument("precision"), std::stoi(argument("workers")), std::stoi(argument("servers")),
          std::stoi(argument("micro"))};
}

Scenario scenario_of(const Servers& of) {
  Scenario s = testing::gpt_scenario("resident", 64 * kMiB);
  s.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 256 * kMiB;
  s.workload.family = of.family;
  if (of.family != "gpt") s.workload.keys = find_workload(of.family)->keys->small_instance();
  s.workload.precision = of.precision == "bf16" ? DType::BF16 : DType::F32;
  s.workload.batch = 3;
  s.workload.micro_batches = of.micro_batches;
  s.workload.devices = of.workers;
  s.workload.parallel["servers"] = of.servers;
  s.optimizer.weight_decay = 0.1;
  s.seed = 5;
  return s;
}

// Of each rank.
std::vector<RankBits> trained(const Servers& of) {
  return train_ranks(scenario_of(of), "*DISABLED_OtherRank*", arguments_of(of));
}

void PrintTo(const Servers& s, std::ostream* out) {
  for (const std::string& argument : arguments_of(s)) *out << argument << ' ';
}

class ServerRanks : public ::testing::TestWithParam<Servers> {};

TEST_P(ServerRanks, TrainAsDataParallelRanksDo) {
  const Servers& of = GetParam();
  Servers plain = of;
  plain.servers = 0;
  const std::vector<RankBits> ranks = trained(of), alone = trained(plain);
  ASSERT_EQ(ranks.size(), static_cast<std::size_t>(of.workers + of.servers));
  const auto workers = static_cast<std::size_t>(of.workers);
  for (std::size_t worker = 0; worker < workers; ++worker) {
    EXPECT_EQ(ranks[worker].at("loss"), alone[worker].at("loss")) << worker;
    if (of.precision == "fp32") {
      EXPECT_EQ(ranks[worker], alone[worker]) << worker;
    }
  }
  EXPECT_NE(ranks[0].at("loss"), ranks[1].at("loss")) << "did they train on the same batch?";
  const RankBits held = held_together(ranks, workers);
  RankBits all = alone[0];
  all.erase("loss");
  EXPECT_GT(all.size(), 4U);
  EXPECT_EQ(held, all);
}

// Two numbers have one sum. Of more, an all-reduce adds in an order of its own.
const Servers kServers[] = {
    {.servers = 1},
    {.precision = "bf16", .servers = 2, .micro_batches = 2},
    {.family = "llama", .servers = 2},
    {.family = "t5", .precision = "bf16", .servers = 1},
};

INSTANTIATE_TEST_SUITE_P(All, ServerRanks, ::testing::ValuesIn(kServers), [](const auto& test) {
  const Servers& s = test.param;
  return s.family + "_" + s.precision + "_" + std::to_string(s.workers) + "x" + std::to_string(s.servers);
});

// An all-reduce of three adds in another order. Whatever it is, all workers have the same parameters: those of servers.
TEST(ServerRanks, ThreeWorkersHaveTheServersParameters) {
  const std::vector<RankBits> ranks = trained({.workers = 3, .servers = 2});
  ASSERT_EQ(ranks.size(), 5U);
  std::size_t held = 0;
  for (std::size_t server : {3U, 4U})
    for (const auto& [name, values] : ranks[server]) {
      for (std::size_t worker = 0; worker < 3; ++worker) EXPECT_EQ(ranks[worker].at(name), values) << worker << name;
      ++held;
    }
  EXPECT_EQ(held + 1, ranks[0].size()) << "and losses";
}

// The other processes of the tests above.
TEST(ServerRanksPeer, DISABLED_OtherRank) { train_as_told(scenario_of(from_arguments())); }

}  // namespace
}  // namespace tandem
