// Ops that make a batch of a graph: what they cost, in closed form, and scenarios that cannot have them.
#include "core/step/graph_inputs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/errors.hpp"
#include "core/machine/cost_model.hpp"
#include "core/workloads/workload.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem {
namespace {

using ::testing::HasSubstr;

Scenario scenario() {
  Scenario s;
  s.machine = testing::round_machine(std::int64_t{1} << 30);
  s.machine.input_stages["sample_neighbours"] = {1000, 10};
  s.machine.input_stages["cache_copy"] = {100, 1};
  s.machine.input_workers = 1;
  s.workload.family = "gnn";
  s.workload.keys["inputs"] = 5, s.workload.keys["hidden"] = 8, s.workload.keys["classes"] = 4;
  s.workload.keys["fanouts"] = std::vector<std::int64_t>{3, 2};
  s.workload.batch = 8;
  s.pipeline.given = true;
  s.policy.name = "resident";
  return s;
}

std::string refusal(const Scenario& s) {
  try {
    find_workload(s.workload.family)->make(s);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

// Of an op of the first step's batch, on the loader's workers.
std::int64_t ns_of(const Scenario& s, const std::string& body) {
  Graph graph;
  const auto source = find_workload("gnn")->make(s);
  source->prologue(graph);
  source->append_step(graph, 0);
  const CostModel cost(s.machine);
  for (OpId id = 0; id < graph.op_count(); ++id)
    if (const Op& op = graph.op(id); graph.work(op.work).body == body) {
      EXPECT_EQ(op.engine, Engine::Loader);
      return cost.run_ns(graph, op.work, Engine::Loader);
    }
  ADD_FAILURE() << "no op " << body;
  return 0;
}

TEST(GraphInputs, TakeWhatTheirStagesTake) {
  Scenario s = scenario();
  // A target draws 2, and each of those three nodes 3 more: 11 a target, and 12 rows of 5 numbers in fp32 are gathered.
  EXPECT_EQ(ns_of(s, "graph.sample"), 8 * (1000 + 11 * 10));
  EXPECT_EQ(ns_of(s, "graph.gather"), 8 * (100 + 12 * 5 * 4));
  s.machine.input_workers = 4;
  EXPECT_EQ(ns_of(s, "graph.sample"), 2 * (1000 + 11 * 10)) << "two targets each";
  s.pipeline.graph_degree = 1;
  EXPECT_EQ(ns_of(s, "graph.sample"), 2 * (1000 + 3 * 10)) << "one, and then one for each of two nodes";
}

TEST(GraphInputs, MakeTheBatchOnWorkers) {
  const Scenario s = scenario();
  const Network network = network_of(s);
  const GraphShape shape = *graph_shape(network);
  EXPECT_EQ(shape.nodes(), (std::vector<std::int64_t>{96, 24, 8}));
  EXPECT_EQ(shape.classes, 4);
  EXPECT_EQ(shape.inputs, 5);
  BatchSpec batch;
  for (const BatchTensor& tensor : network.batch)
    batch.tensors.push_back({tensor.name, tensor.shape.type, tensor.shape.bytes()});
  add_graph_inputs(network, shape, s, batch);
  ASSERT_EQ(batch.inputs.size(), 2U);
  EXPECT_EQ(batch.inputs[0].writes, (std::vector<std::int32_t>{1, 2, 4})) << "neighbours, and the nodes behind all";
  EXPECT_EQ(batch.inputs[1].reads, (std::vector<std::int32_t>{4}));
  EXPECT_EQ(batch.inputs[1].writes, (std::vector<std::int32_t>{0}));
  EXPECT_EQ(batch.tensors[4].bytes, 96 * 8);
  EXPECT_EQ(batch.load.sizes, (std::vector<std::int64_t>{3})) << "labels";
}

TEST(GraphInputs, RefuseWhatIsOfPicturesAndSounds) {
  const auto with = [](const auto& change) {
    Scenario s = scenario();
    change(s);
    return refusal(s);
  };
  EXPECT_EQ(with([](Scenario&) {}), "accepted");
  EXPECT_THAT(with([](Scenario& s) { s.machine.input_stages.erase("sample_neighbours"); }),
              HasSubstr("data.pipeline: machine.input_stages.sample_neighbours is missing"));
  EXPECT_THAT(with([](Scenario& s) { s.pipeline.remote_workers = 2; }), HasSubstr("data.pipeline.remote_workers: "));
  EXPECT_THAT(with([](Scenario& s) { s.pipeline.transform_on_device = true; }), HasSubstr("data.pipeline.transform: "));
  EXPECT_THAT(with([](Scenario& s) { s.pipeline.decode_on_device = true; }), HasSubstr("data.pipeline.decode: "));
  EXPECT_THAT(with([](Scenario& s) { s.pipeline.decoded_cache_bytes = 64; }),
              HasSubstr("data.pipeline.cache.decoded: nothing of a graph is decoded; allowed: 0B"));
  EXPECT_THAT(with([](Scenario& s) { s.pipeline.feature_cache_bytes = 64; }),
              HasSubstr("data.pipeline.cache.features: gnn has no frozen encoder"));
  Scenario vit = scenario();
  vit.workload.family = "vit";
  vit.workload.keys = find_workload("vit")->keys->small_instance();
  for (const char* stage : {"read", "jpeg_decode", "resize", "normalise"}) vit.machine.input_stages[stage];
  EXPECT_EQ(refusal(vit), "accepted");
  vit.data_graph = "graph.safetensors";
  EXPECT_THAT(refusal(vit), HasSubstr("data.graph: vit reads no graph; allowed: gnn"));
}

}  // namespace
}  // namespace tandem
