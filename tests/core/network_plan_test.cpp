// Steps of networks that are no chain: who goes backward, whose gradients are added, what is frozen.
#include "core/step/network_plan.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "core/model/passes.hpp"
#include "core/step/training_source.hpp"
#include "tests/core/branches.hpp"
#include "tests/core/workload_fixture.hpp"

namespace tandem {
namespace {

using testing::branches;

Graph steps_of(const Network& network, std::int64_t micro_batches) {
  Scenario s = small_scenario("mlp");
  s.workload.micro_batches = micro_batches;
  s.optimizer.clip_norm = 1;
  TrainingSource source(network_plan(network, s), s);
  Graph graph;
  source.prologue(graph);
  source.append_step(graph, 0);
  return graph;
}

std::map<std::string, const Op*> ops_of(const Graph& graph, std::int32_t micro_batch) {
  std::map<std::string, const Op*> ops;
  for (OpId id = 0; id < graph.op_count(); ++id)
    if (const Op& op = graph.op(id); op.step == kNone || op.micro_batch == micro_batch)
      ops.emplace(graph.label(op.label), &op);
  return ops;
}

TEST(NetworkPlan, WhatTrainsNothingDoesNotGoBackward) {
  const Graph graph = steps_of(branches(), 1);
  const auto ops = ops_of(graph, 0);
  EXPECT_FALSE(ops.contains("front.backward"));
  EXPECT_TRUE(ops.contains("left.backward"));  // the way to the trunk leads through it
  EXPECT_TRUE(ops.contains("sum.backward"));
  for (const char* stage : {"front", "left", "sum"}) {
    EXPECT_FALSE(ops.contains(std::string(stage) + ".optimizer")) << stage;
    EXPECT_FALSE(ops.contains(std::string(stage) + ".grad_norm")) << stage;
  }
  EXPECT_TRUE(ops.contains("left.load"));
  EXPECT_FALSE(ops.contains("sum.load"));
  for (TensorId id = 0; id < graph.tensor_count(); ++id)
    EXPECT_NE(graph.tensor(id).name, "left.gradient") << "a frozen module has none";
}

// What a step leaves for the next one is the stage's own; a network that is frozen has no other passes than forward.
TEST(NetworkPlan, AFrozenNetworkCarriesStateForwardAlone) {
  NetworkBuilder n("chooser", DType::F32);
  n.freeze();
  const Signal x = n.batch("inputs", Shape({1, 48}, DType::F32));
  const auto block = [&](ModuleScope& m) {
    const LocalId cache = m.carried("kv_cache", Shape({2, 10, 16}, DType::F32));
    const LocalId attended = m.cached_attention("attention", m.in("input", x), cache, /*heads=*/2, /*position=*/3);
    m.output(m.linear("linear", attended, 48));
  };
  const Signal first = n.module("block0", "block", block, /*recomputable=*/true), second = n.again("block1", first);
  n.module("head", "head", [&](ModuleScope& m) { m.output(m.likeliest("next", m.in("input", second))); });
  const TrainingPlan plan = network_plan(n.finish(), small_scenario("mlp"));
  ASSERT_EQ(plan.stages.size(), 3U);
  EXPECT_EQ(plan.ops.size(), 3U) << "a forward for each";
  for (const StageSpec& stage : plan.stages) {
    EXPECT_FALSE(stage.trains() || stage.recomputable || stage.has_loss) << stage.name;
    EXPECT_TRUE(stage.saved.empty() && stage.backward == kNone && !stage.outputs[0].gradient) << stage.name;
    EXPECT_EQ(stage.chooses(), stage.name == "head") << stage.name;
  }
  EXPECT_EQ(plan.stages[0].inputs[0].from, PortSpec::From::Batch);
  EXPECT_EQ(plan.stages[1].inputs[0].from, PortSpec::From::Stage);
  for (const std::size_t i : {0, 1}) {
    ASSERT_EQ(plan.stages[i].carried.size(), 1U);
    EXPECT_EQ(plan.stages[i].carried[0].name, "kv_cache");
    EXPECT_EQ(plan.stages[i].carried[0].bytes, 2 * 10 * 16 * 4);
  }
  const OpSpec& forward = plan.ops[static_cast<std::size_t>(plan.stages[1].forward)];
  EXPECT_EQ(forward.work.pass->find(OperandKind::Carried)->write, 1);  // after the output
}

TEST(NetworkPlan, GradientsOfWhatSeveralReadAreAddedInPlace) {
  for (const std::int64_t micro_batches : {1, 2}) {
    const Graph graph = steps_of(branches(), micro_batches);
    for (std::int32_t micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
      const auto ops = ops_of(graph, micro_batch);
      // The right branch reads the trunk last: it writes, once, though it reads it twice; the left one adds to that.
      const auto gradient = [&](const char* stage) {
        const Write* found = nullptr;
        for (const Write& write : ops.at(std::string(stage) + ".backward")->writes)
          if (graph.tensor_of(write.value).name == "trunk.output_gradient") {
            EXPECT_EQ(found, nullptr) << stage;
            found = &write;
          }
        return found;
      };
      const Write *right = gradient("right"), *left = gradient("left");
      ASSERT_NE(right, nullptr);
      ASSERT_NE(left, nullptr);
      EXPECT_EQ(right->reuses, kNone);
      EXPECT_EQ(left->reuses, right->value);
      EXPECT_EQ(ops.at("trunk.backward")->reads.front(), left->value);
    }
  }
}

}  // namespace
}  // namespace tandem
