// Layers that ranks divide by columns and heads, and ranks that stand for many: whole simulated runs.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "analysis/analysis.hpp"
#include "core/base/errors.hpp"
#include "core/scenario/ranks.hpp"
#include "core/workloads/workload.hpp"
#include "sim/simulate.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/sim/checked_ranks.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

Scenario gpt(std::int64_t tensor) {
  Scenario s = gpt_scenario("resident", kGiB);
  s.workload.precision = DType::BF16;
  s.workload.tensor = tensor;
  return s;
}

struct Totals {
  std::int64_t flops = 0, parameter_bytes = 0;
  std::map<std::string, std::int64_t> exchanges;  // bytes that all-reduces of a rank's layers have, by phase, a step
};

Totals totals_of(const Scenario& scenario, std::size_t* most_ranks = nullptr) {
  Simulation simulation(scenario);
  for (const CheckedRank& rank : run_checked(simulation)) EXPECT_EQ(rank.violation, "");
  if (most_ranks != nullptr) *most_ranks = static_cast<std::size_t>(simulation.rank_count());
  Totals totals;
  for (Rank rank = 0; rank < simulation.rank_count(); ++rank) {
    const Graph& graph = simulation.graph(rank);
    for (TensorId id = 0; id < graph.tensor_count(); ++id)
      if (graph.tensor(id).role == Role::Parameter) totals.parameter_bytes += graph.tensor(id).bytes;
    for (OpId id = 0; id < graph.op_count(); ++id) {
      const Op& op = graph.op(id);
      totals.flops += graph.work_of(op).flops();
      if (rank == 0 && op.step == 0 && graph.work_of(op).body == "all_reduce_sum")
        totals.exchanges[std::string(name_of(op.phase))] += graph.value(op.reads.front()).bytes;
    }
  }
  return totals;
}

// Megatron-LM (Shoeybi et al., 2019, section 3): two all-reduces a layer forward and two backward, each of [tokens,
// hidden]; one more for the embedding, whose rows are divided, and one for the logits' input. And for the loss two fp32
// numbers of each rank and token, where Megatron-LM has three all-reduces of one.
TEST(Tensor, ExchangesWhatMegatronDoes) {
  const std::int64_t layers = 4, bytes = 2 * 32 * 64 * 2;  // batch 2, sequence 32, hidden 64, in bf16
  for (const std::int64_t ranks : {2, 4}) {
    const Totals totals = totals_of(gpt(ranks));
    const std::int64_t of_loss = 2 * ranks * (2 * 32) * 4;
    EXPECT_EQ(totals.exchanges.at("forward"), (2 * layers + 1) * bytes + of_loss) << ranks;
    EXPECT_EQ(totals.exchanges.at("backward"), (2 * layers + 1) * bytes) << ranks;
  }
}

// Each product is computed once, by one of the ranks or by all of them together.
TEST(Tensor, DividesAllProducts) {
  const Totals whole = totals_of(gpt(1)), divided = totals_of(gpt(2));
  EXPECT_EQ(divided.flops, whole.flops);
  EXPECT_GT(divided.parameter_bytes, whole.parameter_bytes);  // norms, and biases behind a sum
  EXPECT_LT(divided.parameter_bytes, whole.parameter_bytes + whole.parameter_bytes / 10);
}

// Output layers of every kind: tied or not, whole or a tile at a time.
TEST(Tensor, DividesOutputLayers) {
  for (const bool tied : {false, true})
    for (const std::int64_t tiles : {1, 4}) {
      Scenario s = gpt(1);
      s.workload.keys["tied_embedding"] = tied;
      s.workload.keys["loss_tiles"] = tiles;
      const Totals whole = totals_of(s);
      s.workload.tensor = 2;
      EXPECT_EQ(totals_of(s).flops, whole.flops) << tied << ' ' << tiles;
    }
}

// With recompute, what is exchanged forward is exchanged again; memory falls.
TEST(Tensor, RecomputesACutBlockAsOne) {
  Scenario s = gpt(2);
  s.workload.recompute = "block";
  const std::int64_t bytes = 2 * 32 * 64 * 2;
  EXPECT_EQ(totals_of(s).exchanges.at("recompute"), 2 * 4 * bytes);
}

TEST(Tensor, EveryFamilyIsDividedOrSaysWhyNot) {
  std::vector<std::string> divided;
  for (const WorkloadEntry* family : workloads()) {
    if (family->network == nullptr) continue;
    Scenario s = gpt(1);
    s.workload.family = family->name;
    s.workload.keys = family->keys->small_instance();
    s.workload.precision = family->name == "mlp" || family->name == "imported" ? DType::F32 : DType::BF16;
    const Totals whole = totals_of(s);
    // The small instances' heads: a divisor of them.
    for (const std::int64_t ranks : {2, 3}) {
      SCOPED_TRACE(std::string(family->name) + " " + std::to_string(ranks));
      s.workload.tensor = ranks;
      try {
        const Totals all = totals_of(s);
        EXPECT_GE(all.flops, whole.flops);
        EXPECT_LE(all.flops, ranks * whole.flops);
        divided.emplace_back(family->name);
      } catch (const ConfigError& error) {
        EXPECT_NE(std::string(error.what()).find("parallel.tensor"), std::string::npos) << error.what();
      }
    }
  }
  EXPECT_GE(divided.size(), 8U);
}

double step_s(const Scenario& scenario) {
  Simulation simulation(scenario);
  simulation.run();
  return analyse(simulation.record()).step_s.median;
}

// One rank of each stage for all that are like it.
TEST(Fold, TakesTheSameTime) {
  struct Shape {
    std::int64_t tensor, data, stages;
    const char* schedule;
    std::int64_t chunks;
  };
  for (const Shape& shape : {Shape{2, 1, 1, "1f1b", 1}, Shape{1, 4, 1, "1f1b", 1}, Shape{1, 2, 2, "1f1b", 1},
                             Shape{2, 1, 2, "interleaved", 2}, Shape{2, 2, 1, "1f1b", 1}}) {
    Scenario s = gpt(shape.tensor);
    s.workload.devices = shape.data;
    s.workload.micro_batches = 4;
    s.parallel.pipeline = shape.stages;
    s.parallel.schedule = shape.schedule;
    s.parallel.chunks = shape.chunks;
    s.machine.dispatch_ns = 5000;
    s.machine.collective_latency_ns = 20000;
    const double unfolded = step_s(s);
    std::size_t ranks = 0;
    s.parallel.fold = true;
    totals_of(s, &ranks);
    EXPECT_EQ(ranks, static_cast<std::size_t>(shape.stages));
    EXPECT_NEAR(step_s(s), unfolded, 1e-6 * unfolded) << shape.tensor << ' ' << shape.data << ' ' << shape.stages;
  }
}

TEST(Ranks, StandInRows) {
  Scenario s = gpt(2);
  s.workload.devices = 3;
  s.parallel.pipeline = 4;
  EXPECT_EQ(rank_count(s), 24);
  for (Rank rank = 0; rank < 24; ++rank) EXPECT_EQ(rank_at(s, place_of(s, rank)), rank);
  EXPECT_EQ(place_of(s, 1), (RankPlace{.data = 0, .stage = 0, .tensor = 1}));
  EXPECT_EQ(place_of(s, 2), (RankPlace{.data = 1, .stage = 0, .tensor = 0}));
  EXPECT_EQ(place_of(s, 6), (RankPlace{.data = 0, .stage = 1, .tensor = 0}));
  EXPECT_EQ(leading_rank(s), 18);
  std::map<std::int32_t, std::vector<Rank>> groups;  // no number is used twice
  for (Rank rank = 0; rank < 24; ++rank)
    for (const RankGroup& group : {data_group(s, rank), tensor_group(s, rank), pipeline_group(s, rank)}) {
      const auto [found, fresh] = groups.emplace(group.number, group.members);
      EXPECT_EQ(found->second, group.members);
    }
  EXPECT_EQ(groups.size(), 4U * 2 + 4 * 3 + 3 * 2);
}

// Of 8 devices a host: what goes by the network, and by how many links.
TEST(Ranks, OnTheirHosts) {
  Scenario s = gpt(8);
  s.machine.devices_per_host = 8;
  s.workload.devices = 4;
  s.parallel.pipeline = 2;
  EXPECT_EQ(members_on_a_host(s, 1, 8), 0);  // all on one
  EXPECT_EQ(data_members_on_a_host(s), 1);
  EXPECT_TRUE(is_other_host(s, 0, 32));
  s.workload.tensor = 2;
  s.workload.devices = 8;
  EXPECT_EQ(data_members_on_a_host(s), 4);
  s.workload.tensor = 1, s.workload.devices = 2;
  EXPECT_EQ(data_members_on_a_host(s), 0);
  EXPECT_FALSE(is_other_host(s, 0, 2));
}

// A ring through two hosts of four members each leaves by four links; alone it is as fast as the links within.
TEST(Ranks, CollectivesAmongHostsTakeTheirLinks) {
  HardwareProfile machine = round_machine(kGiB);
  machine.collective_bytes_per_s = 100e9;
  machine.network_bytes_per_s = 10e9;
  machine.network_latency_ns = 1000;
  const CostModel cost(machine);
  const std::int64_t bytes = 2'000'000'000;  // twice what is added up
  EXPECT_EQ(cost.collective_ns(bytes, 8), 17'500'000);
  EXPECT_EQ(cost.collective_ns(bytes, 8, 4), 43'751'000);
  EXPECT_EQ(cost.collective_ns(bytes, 2, 1), 100'001'000);
}

}  // namespace
}  // namespace tandem::testing
