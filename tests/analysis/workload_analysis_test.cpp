// What modules cost, by hand; which data reach them; and that every family can be analysed.
#include <gmock/gmock.h>

#include <filesystem>
#include <numeric>

#include "analysis/access_pattern.hpp"
#include "analysis/module_costs.hpp"
#include "analysis/module_shares.hpp"
#include "core/policies/common/first_step.hpp"
#include "core/step/placement.hpp"
#include "core/workloads/workload.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/common/source_dir.hpp"

namespace tandem {
namespace {

using ::testing::ElementsAre;

// A family's own small instance.
Scenario small(const WorkloadEntry& family) {
  Scenario s;
  s.machine = testing::round_machine(std::int64_t{1} << 30);
  s.workload.family = family.name;
  s.workload.batch = 2;
  s.policy.name = "resident";
  s.workload.keys = family.keys->small_instance();
  if (family.name == "imported") s.workload.keys["path"] = source_path("tests/data/imported/small");
  return s;
}

struct Analysed {
  explicit Analysed(Scenario of)
      : scenario(std::move(of)),
        network(network_of(scenario)),
        groups(groups_of(network)),
        cost(scenario.machine),
        graph(first_step(scenario, std::nullopt)),
        costs(costs_of(graph, 0, network, groups, cost)) {}
  std::string labels() const {
    std::string text;
    for (const ModuleGroup& group : groups)
      text += (text.empty() ? "" : "; ") + words_for(network, group.modules) + " " +
              std::string(label_of(group.modalities));
    return text;
  }
  Scenario scenario;
  Network network;
  std::vector<ModuleGroup> groups;
  CostModel cost;
  Graph graph;
  std::vector<GroupCosts> costs;
};

Scenario perceptron() {
  Scenario s;
  s.machine = testing::round_machine(std::int64_t{1} << 30);
  s.workload.family = "mlp";
  for (const auto& [key, size] : {std::pair("layers", 3), {"inputs", 512}, {"hidden", 1024}, {"classes", 256}})
    s.workload.keys[key] = size;
  s.workload.batch = 1000;
  s.policy.name = "resident";
  return s;
}

// The first layer reads the batch, of which nobody wants a gradient.
TEST(WorkloadAnalysis, CostsOfALayerByHand) {
  const Analysed a(perceptron());
  ASSERT_EQ(a.labels(), "layer0 features; layer1..2 features; head features");
  const GroupCosts& c = a.costs[0];
  // 2 x 1000 x 512 x 1024, forward and for the weight's gradient.
  EXPECT_EQ(c.forward_flops, 1'048'576'000);
  EXPECT_EQ(c.backward_flops, 1'048'576'000);
  // A product reads and writes 4 x (1000 x 512 + 512 x 1024 + 1000 x 1024) = 8,241,152 bytes. Of the result's
  // 4,096,000, relu moves twice as much forward and thrice backward, and the bias's gradient sums it up once.
  EXPECT_EQ(c.forward_bytes, 8'241'152 + 2 * 4'096'000);
  EXPECT_EQ(c.backward_bytes, 8'241'152 + 4 * 4'096'000);
  EXPECT_DOUBLE_EQ(c.intensity(), 2'097'152'000.0 / 41'058'304.0);
  // At 10 TFLOPS a product takes 104.8576 us, at 1 TB/s its bytes 8.2; the rest is (2 + 4) x 4.096 us of traffic. The
  // CPU has a tenth of both.
  EXPECT_NEAR(c.device.seconds, 234.2912e-6, 2e-9);
  EXPECT_NEAR(c.cpu.seconds, 2342.912e-6, 2e-9);
  EXPECT_EQ(c.device.evidence(), "modelled");
  // Its result goes to the next layer, whose gradient of it comes back: 4,096,000 bytes each, at 10 GB/s.
  EXPECT_EQ(c.in_bytes, 4'096'000);
  EXPECT_EQ(c.out_bytes, 4'096'000);
  EXPECT_EQ(c.crossings, 2);
  EXPECT_NEAR(c.transfer_s, 819.2e-6, 1e-9);
  // 512 x 1024 weights and 1024 biases; Adam has two numbers for each; relu's result is kept.
  EXPECT_EQ(c.parameter_bytes, 4 * 525'312);
  EXPECT_EQ(c.gradient_bytes, 4 * 525'312);
  EXPECT_EQ(c.state_bytes, 8 * 525'312);
  EXPECT_EQ(c.activation_bytes, 4'096'000);
  EXPECT_THAT(independent_s(a.network, a.groups, a.costs), ElementsAre(0, 0, 0)) << "each leads to the next";
}

TEST(WorkloadAnalysis, TwoLayersInARowMoveOnlyWhatCrossesTheirEnds) {
  const Analysed a(perceptron());
  EXPECT_EQ(a.costs[1].in_bytes, 2 * 4'096'000) << "layer0's result, and the gradient of layer2's";
  EXPECT_EQ(a.costs[1].out_bytes, 2 * 4'096'000);
  EXPECT_EQ(a.costs[1].forward_flops, 2.0 * 2 * 1000 * 1024 * 1024);
}

TEST(WorkloadAnalysis, MicroBatchesAreAllCounted) {
  Scenario s = perceptron();
  s.workload.micro_batches = 2;
  const Analysed one(perceptron()), two(s);
  EXPECT_EQ(two.costs[0].forward_flops, 2 * one.costs[0].forward_flops);
  EXPECT_EQ(two.costs[0].in_bytes, 2 * one.costs[0].in_bytes);
  EXPECT_EQ(two.costs[0].activation_bytes, one.costs[0].activation_bytes) << "of one at a time";
  EXPECT_EQ(two.costs[0].parameter_bytes, one.costs[0].parameter_bytes);
}

// A row of the profile's `ops`, then of its `bodies`.
TEST(WorkloadAnalysis, SaysWhereTimesComeFrom) {
  Scenario s = perceptron();
  s.machine.bodies["mlp.layer.forward"].op_ns = 1000;
  s.machine.bodies["mlp.layer.backward"].op_ns = 0;
  const Analysed fitted(s);
  EXPECT_EQ(fitted.costs[0].device.evidence(), "fitted");
  EXPECT_NEAR(fitted.costs[0].device.seconds, 235.2912e-6, 2e-9);
  EXPECT_EQ(fitted.costs[0].cpu.evidence(), "modelled");
  EXPECT_EQ(fitted.costs[2].device.evidence(), "modelled");
  MeasuredOps ops;
  for (OpId id = 0; id < fitted.graph.op_count(); ++id)
    if (fitted.graph.work_of(fitted.graph.op(id)).body == "mlp.layer.forward") {
      MeasuredOp op;
      op.afresh = {500'000, 500'000, 500'000, 9};
      ops.rows[op_key(fitted.graph.work_of(fitted.graph.op(id)), Engine::Compute)] = op;
    }
  s.machine.ops = std::make_shared<const MeasuredOps>(ops);
  const Analysed measured(s);
  EXPECT_NEAR(measured.costs[0].device.measured_s, 500e-6, 1e-8);
  EXPECT_EQ(measured.costs[0].device.evidence(), "mixed") << "four fifths";
}

TEST(WorkloadAnalysis, DataReachModulesOverEdges) {
  const auto labels = [](const char* family) { return Analysed(small(*find_workload(family))).labels(); };
  EXPECT_EQ(labels("clip"),
            "patches image; vision_block0..1 image; vision_projection image; text_embedding text; text_block0..1 text; "
            "text_projection text; head fused");
  EXPECT_EQ(labels("whisper"),
            "frames audio; frame_positions audio; encoder0..1 audio; memory audio; embedding text; decoder0..1 fused; "
            "head fused");
  EXPECT_EQ(labels("gnn"), "layer0 graph; layer1 graph; head graph");
  EXPECT_EQ(labels("gpt"), "embedding text; block0..1 text; head text");
  EXPECT_EQ(labels("imported"), "before text; blocks_0..2 text; after text");
  EXPECT_THAT(labels("t5"), ::testing::HasSubstr("encoder_positions shared"));
  EXPECT_THAT(labels("unet"), ::testing::HasSubstr("time shared"));
}

TEST(WorkloadAnalysis, TensorsSayWhatTheyAreByNameOrShape) {
  const auto of = [](const char* name, Shape shape) {
    return std::string(label_of(modalities_of(BatchTensor{name, std::move(shape), 0})));
  };
  EXPECT_EQ(of("pixel_values", Shape({2, 3, 8, 8}, DType::F32)), "image");
  EXPECT_EQ(of("input_features", Shape({2, 80, 30}, DType::F32)), "audio");
  EXPECT_EQ(of("input0", Shape({2, 5}, DType::I64)), "text");
  EXPECT_EQ(of("input0", Shape({2, 3, 4, 8, 8}, DType::F32)), "video");
  EXPECT_EQ(of("input0", Shape({2, 80, 30}, DType::F32)), "audio");
  EXPECT_EQ(of("input0", Shape({2, 9}, DType::F32)), "features");
  EXPECT_EQ(of("labels", Shape({2, 5}, DType::I64)), "shared") << "is asked for, not looked at";
  EXPECT_EQ(of("input1", Shape({2}, DType::I64)), "shared");
}

// In CLIP each tower is independent of the other, and the head of none.
TEST(WorkloadAnalysis, TowersCouldRunAtOnce) {
  const Analysed a(small(*find_workload("clip")));
  const std::vector<double> independent = independent_s(a.network, a.groups, a.costs);
  const auto sum = [&](std::size_t from, std::size_t to) {
    double s = 0;
    for (std::size_t g = from; g < to; ++g) s += a.costs[g].device.seconds;
    return s;
  };
  for (std::size_t g = 0; g < 3; ++g) EXPECT_NEAR(independent[g], sum(3, 6), 1e-15);
  for (std::size_t g = 3; g < 6; ++g) EXPECT_NEAR(independent[g], sum(0, 3), 1e-15);
  EXPECT_EQ(independent[6], 0);
  const std::vector<Meeting> meetings = meetings_of(nullptr, a.network, a.groups);
  ASSERT_EQ(meetings.size(), 1U);
  EXPECT_EQ(meetings[0].group, 6U);
  EXPECT_EQ(meetings[0].branches[0].module, "vision_projection");
  EXPECT_EQ(meetings[0].branches[1].module, "text_projection");
}

TEST(WorkloadAnalysis, AccessPatterns) {
  const auto of = [](const char* family, std::size_t group) {
    const Analysed a(small(*find_workload(family)));
    return access_of(*a.network.modules[static_cast<std::size_t>(a.groups[group].modules.front())].module);
  };
  const auto share = [](const AccessBytes& access, Access one) {
    return static_cast<double>(access.bytes[static_cast<std::size_t>(one)]) /
           static_cast<double>(std::accumulate(access.bytes.begin(), access.bytes.end(), std::int64_t{0}));
  };
  EXPECT_GT(share(of("whisper", 0), Access::Windows), 0.2) << "two convolutions";
  EXPECT_EQ(share(of("whisper", 1), Access::Stream), 1) << "positions are added";
  EXPECT_EQ(of("clip", 3).most(), Access::Gather) << "a table of tokens";
  EXPECT_GT(share(of("gnn", 0), Access::Gather), 0.1) << "neighbours";
  EXPECT_GT(share(of("imported", 0), Access::Gather), 0.1) << "a table of tokens";
  EXPECT_GT(share(of("imported", 1), Access::Products), 0.1);
}

// Each family, those too that are added later: modules are all found again, in flops, memory and words.
TEST(WorkloadAnalysis, OfEveryFamily) {
  for (const WorkloadEntry* family : workloads()) {
    if (family->network == nullptr) continue;
    SCOPED_TRACE(std::string(family->name));
    const Analysed a(small(*family));
    double flops = 0, found = 0;
    for (OpId id = 0; id < a.graph.op_count(); ++id)
      if (const Op& op = a.graph.op(id); op.phase == Phase::Forward || op.phase == Phase::Backward)
        flops += static_cast<double>(a.graph.work_of(op).flops());
    std::int64_t parameters = 0, of_groups = 0;
    for (TensorId id = 0; id < a.graph.tensor_count(); ++id)
      if (a.graph.tensor(id).role == Role::Parameter) parameters += a.graph.tensor(id).bytes;
    std::size_t modules = 0;
    for (std::size_t g = 0; g < a.groups.size(); ++g) {
      const GroupCosts& c = a.costs[g];
      found += c.forward_flops + c.backward_flops;
      of_groups += c.parameter_bytes;
      modules += a.groups[g].modules.size();
      EXPECT_GT(c.device.seconds, 0);
      EXPECT_GT(c.cpu.seconds, 0);
      EXPECT_GT(c.forward_bytes, 0);
      Scenario placed = a.scenario;
      placed.policy.options["cpu_modules"] = words_for(a.network, a.groups[g].modules);
      std::vector<std::int32_t> on_cpu;
      const std::vector<bool> places = modules_on_cpu(a.network, placed);
      for (std::size_t i = 0; i < places.size(); ++i)
        if (places[i]) on_cpu.push_back(static_cast<std::int32_t>(i));
      EXPECT_EQ(on_cpu, a.groups[g].modules) << placed.policy.options["cpu_modules"];
    }
    EXPECT_DOUBLE_EQ(found, flops);
    EXPECT_EQ(of_groups, parameters);
    EXPECT_EQ(modules, a.network.modules.size());
  }
}

}  // namespace
}  // namespace tandem
