// The shape of step graphs: what reads and writes what, versions, in-place updates, and the options' errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/base/errors.hpp"
#include "core/formats/state_blocks.hpp"
#include "core/transforms/delayed_update.hpp"
#include "core/transforms/one_bit.hpp"
#include "tests/core/workload_fixture.hpp"

namespace tandem {
namespace {

using ::testing::HasSubstr;

// Ops whose label is `label`, in order.
std::vector<const Op*> ops_of(const Graph& graph, std::string_view label) {
  std::vector<const Op*> found;
  for (OpId id = 0; id < graph.op_count(); ++id)
    if (graph.label(graph.op(id).label) == label) found.push_back(&graph.op(id));
  return found;
}

// The version of `tensor` that the op reads; -1 if none.
std::int32_t version_read(const Graph& graph, const Op& op, std::string_view tensor) {
  for (const ValueId read : op.reads)
    if (graph.tensor_of(read).name == tensor) return graph.value(read).version;
  return -1;
}

TEST(WorkloadGraph, UpdatesAreUsedByTheNextStep) {
  const Graph graph = whole_graph(small_scenario("gpt"));
  const auto forward = ops_of(graph, "block1.forward");
  ASSERT_EQ(forward.size(), 3u);
  for (std::int32_t step = 0; step < 3; ++step) {
    EXPECT_EQ(version_read(graph, *forward[static_cast<std::size_t>(step)], "block1.parameter"), step);
    EXPECT_EQ(forward[static_cast<std::size_t>(step)]->step, step);
  }
}

TEST(WorkloadGraph, DelayedUpdatesAreUsedOneStepLater) {
  const Graph graph = whole_graph(small_scenario("gpt"), {delayed_update()});
  for (const char* label : {"block1.forward", "block1.backward"}) {
    const auto ops = ops_of(graph, label);
    const std::int32_t expected[] = {0, 0, 1};
    for (std::size_t step = 0; step < 3; ++step)
      EXPECT_EQ(version_read(graph, *ops[step], "block1.parameter"), expected[step]) << label;
  }
  // The update reads the latest version and must leave its storage to the next forward.
  const auto updates = ops_of(graph, "block1.optimizer");
  for (std::int32_t step = 0; step < 3; ++step) {
    const Op& op = *updates[static_cast<std::size_t>(step)];
    EXPECT_EQ(version_read(graph, op, "block1.parameter"), step);
    EXPECT_EQ(op.writes[0].reuses, kNone);
    EXPECT_NE(op.writes[1].reuses, kNone);
  }
}

TEST(WorkloadGraph, GradientsAccumulateInPlaceAndStartAfreshEachStep) {
  Scenario scenario = small_scenario("gpt");
  scenario.workload.micro_batches = 3;
  const Graph graph = whole_graph(scenario);
  const auto backward = ops_of(graph, "block0.backward");
  ASSERT_EQ(backward.size(), 9u);
  for (std::size_t i = 0; i < backward.size(); ++i) {
    const Write& gradient = backward[i]->writes[0];
    EXPECT_EQ(graph.tensor_of(gradient.value).role, Role::Gradient);
    EXPECT_EQ(backward[i]->micro_batch, static_cast<std::int32_t>(i % 3));
    if (i % 3 == 0) {
      EXPECT_EQ(gradient.reuses, kNone);
    } else {
      EXPECT_EQ(gradient.reuses, backward[i - 1]->writes[0].value);
      EXPECT_TRUE(std::ranges::count(backward[i]->reads, gradient.reuses)) << "reads what it adds to";
    }
  }
  EXPECT_EQ(ops_of(graph, "block0.optimizer").size(), 3u);
}

TEST(WorkloadGraph, TiedEmbeddingTakesTheHeadsPart) {
  const Graph graph = whole_graph(small_scenario("gpt"));
  const Op& embedding = *ops_of(graph, "embedding.backward")[0];
  EXPECT_EQ(version_read(graph, embedding, "head.tied_gradient"), 0);
  EXPECT_EQ(version_read(graph, *ops_of(graph, "head.forward")[0], "embedding.parameter"), 0);
  Scenario untied = small_scenario("gpt");
  untied.workload.keys["tied_embedding"] = false;
  const Graph other = whole_graph(untied);
  EXPECT_EQ(version_read(other, *ops_of(other, "head.forward")[0], "embedding.parameter"), -1);
}

TEST(WorkloadGraph, RecomputeKeepsOnlyTheBlocksInput) {
  Scenario scenario = small_scenario("gpt");
  scenario.workload.recompute = "block";
  const Graph graph = whole_graph(scenario);
  EXPECT_EQ(ops_of(graph, "block0.forward")[0]->writes.size(), 1u);
  const Op& recompute = *ops_of(graph, "block0.recompute")[0];
  const Op& backward = *ops_of(graph, "block0.backward")[0];
  EXPECT_EQ(recompute.phase, Phase::Recompute);
  for (const Write& write : recompute.writes) EXPECT_TRUE(std::ranges::count(backward.reads, write.value));
}

TEST(WorkloadGraph, ClippingReadsEveryNorm) {
  Scenario scenario = small_scenario("gpt");
  scenario.optimizer.clip_norm = 1;
  const Graph graph = whole_graph(scenario);
  const Op& clip = *ops_of(graph, "clip")[0];
  EXPECT_EQ(clip.reads.size(), 5u);  // embedding, three blocks, head
  EXPECT_TRUE(clip.has_result);
  for (const Op* update : ops_of(graph, "block2.optimizer"))
    EXPECT_EQ(graph.tensor_of(update->reads.back()).name, "update_control");
}

TEST(WorkloadGraph, EvaluationFollowsEveryNthUpdateAndTheLast) {
  Scenario scenario = small_scenario("gpt");
  scenario.steps = 5;
  scenario.validation = {.every = 2, .batches = 3};
  for (const bool delayed : {false, true}) {
    const Graph graph = whole_graph(scenario, delayed ? Rewrites{delayed_update()} : Rewrites{});
    const auto ops = ops_of(graph, "block1.evaluate");
    ASSERT_EQ(ops.size(), 3u * 3u);
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const Op& op = *ops[i];
      const std::int32_t step = i < 3 ? 1 : i < 6 ? 3 : 4;
      EXPECT_EQ(op.step, step);
      EXPECT_EQ(op.micro_batch, static_cast<std::int32_t>(i % 3));
      EXPECT_EQ(version_read(graph, op, "block1.parameter"), delayed ? step : step + 1);
      EXPECT_EQ(op.phase, Phase::Evaluate);
      EXPECT_EQ(op.writes.size(), 1u) << "what a backward would need is not kept";
    }
    for (const Op* head : ops_of(graph, "head.evaluate")) EXPECT_TRUE(head->has_result);
    const auto loads = ops_of(graph, "validation.load");
    ASSERT_EQ(loads.size(), 9u);
    EXPECT_EQ(graph.work_of(*loads[0]).sizes.back(), 1);
    EXPECT_EQ(graph.work_of(*ops_of(graph, "batch.load")[0]).sizes.back(), 0);
  }
}

TEST(WorkloadGraph, RanksReduceEachBucketInTheSameOrder) {
  Scenario scenario = small_scenario("gpt");
  scenario.workload.devices = 2;
  scenario.workload.micro_batches = 2;
  const Graph graph = whole_graph(scenario);
  std::int32_t sequence = 0;
  for (OpId id = 0; id < graph.op_count(); ++id) {
    const Op& op = graph.op(id);
    if (op.engine != Engine::Collective) continue;
    EXPECT_EQ(op.match_group, 0);
    EXPECT_EQ(op.match_sequence, sequence++);
    EXPECT_EQ(op.micro_batch, 1);
    EXPECT_EQ(op.writes[0].reuses, op.reads[0]);
  }
  EXPECT_EQ(sequence, 3 * 5);
}

// What a rank owns is a range of each bucket; a whole parameter is gathered once a step, or once a pass.
TEST(WorkloadGraph, RanksHavePartsOfEachBucket) {
  for (const char* partition : {"states", "parameters"}) {
    Scenario scenario = small_scenario("gpt");
    scenario.workload.devices = 4;
    scenario.workload.micro_batches = 2;
    scenario.workload.partition = partition;
    scenario.steps = 2;
    const Graph graph = whole_graph(scenario, {}, 0, /*rank=*/3);
    const auto tensor = [&](const std::string& name) {
      for (TensorId id = 0; id < graph.tensor_count(); ++id)
        if (graph.tensor(id).name == name) return graph.tensor(id);
      return Tensor{};
    };
    const Tensor whole = tensor("block1.whole_parameter");
    for (const char* name : {"block1.parameter", "block1.gradient"}) {
      EXPECT_EQ(tensor(name).bytes * 4, whole.bytes);
      EXPECT_EQ(tensor(name).first_element, 3 * tensor(name).bytes / size_of(whole.type));
      EXPECT_EQ(tensor(name).layout, whole.layout);
    }
    EXPECT_EQ(tensor("block1.adam_m").first_element, tensor("block1.parameter").first_element);
    EXPECT_EQ(whole.layout->elements * size_of(whole.type), whole.bytes);
    const bool each_pass = std::string(partition) == "parameters";
    EXPECT_EQ(whole.persistent, !each_pass) << "stays from update to update";
    EXPECT_EQ(ops_of(graph, "block1.all_gather")[1]->writes[0].reuses == kNone, each_pass);
    // Two steps of two micro-batches. For each pass: a forward and a backward.
    EXPECT_EQ(ops_of(graph, "block1.all_gather").size(), each_pass ? 8u : 2u);
    // The last stage's backward follows its forward; an embedding's backward reads no parameters.
    EXPECT_EQ(ops_of(graph, "head.all_gather").size(), each_pass ? 4u : 2u);
    EXPECT_EQ(ops_of(graph, "embedding.all_gather").size(), each_pass ? 4u : 2u);
    EXPECT_EQ(ops_of(graph, "block1.reduce_scatter").size(), 4u);
    EXPECT_EQ(ops_of(graph, "block1.accumulate").size(), 2u);
    std::int32_t sequence = 0;
    for (OpId id = 0; id < graph.op_count(); ++id) {
      if (graph.op(id).engine != Engine::Collective) continue;
      EXPECT_EQ(graph.op(id).match_sequence, sequence++);
    }
  }
}

TEST(WorkloadGraph, WhatCannotBeDividedIsAnInputError) {
  Scenario scenario = small_scenario("gpt");
  scenario.workload.devices = 2;
  scenario.workload.partition = "states";
  const auto problem = [&](const Rewrites& rewrites) -> std::string {
    try {
      whole_graph(scenario, rewrites);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(problem({}), "");
  EXPECT_THAT(problem({one_bit({.warmup_steps = 1, .block = 32})}),
              HasSubstr("workload.partition: this policy's updates need whole gradients; allowed: none"));
  scenario.checkpoint.directory = "/tmp/checkpoints";
  EXPECT_EQ(problem({}), "") << "each rank saves its part";
}

// Two ranks with half of each sample's tokens have half of all states each, and both halves of the weights once a step.
TEST(WorkloadGraph, RanksThatDivideSamplesDivideStates) {
  const auto of_step = [](const std::string& partition) {
    Scenario scenario = small_scenario("gpt");
    scenario.workload.parallel["sequence"] = 2;
    scenario.workload.parallel["sequence_kind"] = "ring";
    scenario.policy.name = "resident";
    scenario.workload.partition = partition;
    scenario.steps = 1;
    return whole_graph(scenario);
  };
  const auto states = [](const Graph& graph) {
    std::int64_t bytes = 0;
    for (TensorId id = 0; id < graph.tensor_count(); ++id)
      if (graph.tensor(id).role == Role::OptimizerState) bytes += graph.tensor(id).bytes;
    return bytes;
  };
  const Graph whole = of_step("none"), divided = of_step("optimizer");
  std::int64_t gathered = 0, buckets = 0;
  for (OpId id = 0; id < divided.op_count(); ++id)
    gathered += std::string_view(divided.work_of(divided.op(id)).body) == "all_gather";
  for (TensorId id = 0; id < divided.tensor_count(); ++id) buckets += divided.tensor(id).role == Role::Parameter;
  EXPECT_EQ(gathered, buckets);
  // Each bucket may have 32 elements more, so that both halves begin with a whole field's alignment: of two moments.
  EXPECT_GE(2 * states(divided), states(whole));
  EXPECT_LE(2 * states(divided), states(whole) + buckets * 32 * 2 * size_of(DType::F32));
}

// Five blocks by two: what the backward comes to, and what it is made from.
TEST(WorkloadGraph, OfASegmentOfBlocksTheFirstInputAloneIsKept) {
  Scenario scenario = small_scenario("gpt");
  scenario.workload.keys["layers"] = 5;
  scenario.workload.recompute = "block";
  scenario.workload.checkpoint_every = 2;
  scenario.steps = 1;
  scenario.workload.micro_batches = 1;
  const Graph graph = whole_graph(scenario);
  std::string order;
  for (OpId id = 0; id < graph.op_count(); ++id) {
    const Op& op = graph.op(id);
    if (op.phase != Phase::Recompute && op.phase != Phase::Backward) continue;
    order += std::string(graph.label(op.label)) + ' ';
    for (const ValueId read : op.reads)
      for (const char* inner : {"block0.output", "block2.output"})
        if (graph.tensor_of(read).name == inner) {
          EXPECT_EQ(graph.value(read).version, 1) << graph.op_name(id);
        }
  }
  EXPECT_EQ(order,
            "head.backward block4.recompute block4.backward block2.recompute block3.recompute block3.backward "
            "block2.backward block0.recompute block1.recompute block1.backward block0.backward embedding.backward ");
}

TEST(WorkloadGraph, BFloat16UpdatesItsParameterAndWhatItLacksOfTheMaster) {
  Scenario scenario = small_scenario("gpt");
  scenario.workload.precision = DType::BF16;
  const Graph graph = whole_graph(scenario);
  const Op& update = *ops_of(graph, "block0.optimizer")[0];
  std::vector<std::string> reads, writes;
  std::int64_t state_bytes = 0;
  for (const ValueId read : update.reads) reads.push_back(graph.tensor_of(read).name);
  for (const Write& write : update.writes) {
    writes.push_back(graph.tensor_of(write.value).name);
    EXPECT_NE(write.reuses, kNone);
    if (graph.tensor_of(write.value).role == Role::OptimizerState) state_bytes += graph.value(write.value).bytes;
  }
  const std::vector<std::string> updated{"block0.parameter", "block0.master_low", "block0.adam_m", "block0.adam_v"};
  EXPECT_EQ(writes, updated);
  reads.erase(reads.begin());  // the gradient
  EXPECT_EQ(reads, updated);
  const std::int64_t elements = graph.work_of(update).sizes[0];
  EXPECT_EQ(state_bytes, 10 * elements);
  // Read: gradient 2, parameter 2, low 2, moments 8; written: all but the gradient.
  EXPECT_EQ(graph.work_of(update).kernels[0].bytes, 26 * elements);
}

TEST(WorkloadGraph, Float16UpdatesItsMasterCopyFirst) {
  Scenario scenario = small_scenario("gpt");
  scenario.workload.precision = DType::F16;
  const Graph graph = whole_graph(scenario);
  const Op& update = *ops_of(graph, "block0.optimizer")[0];
  EXPECT_EQ(graph.tensor_of(update.writes[0].value).name, "block0.master");
  EXPECT_EQ(graph.tensor_of(update.writes.back().value).name, "block0.parameter");
  EXPECT_EQ(graph.value(update.writes[0].value).bytes, 2 * graph.value(update.writes.back().value).bytes);
  EXPECT_EQ(version_read(graph, update, "block0.parameter"), -1);
}

// Bytes of the op's operand of this name in the part of it that has these bytes of its first write.
ByteRange range_of(const Graph& graph, const Op& op, std::string_view tensor, ByteRange lead) {
  const std::int64_t lead_bytes = graph.value(op.writes[0].value).bytes;
  for (const Write& write : op.writes)
    if (graph.tensor_of(write.value).name == tensor)
      return operand_range(lead, lead_bytes, graph.value(write.value).bytes);
  return {};
}

TEST(WorkloadGraph, EveryPartOfAnUpdateHasWholeBlocksOfQuantisedStates) {
  for (const DType precision : {DType::F32, DType::BF16, DType::F16})
    for (const std::int64_t bits : {8, 4}) {
      Scenario scenario = small_scenario("gpt");
      scenario.workload.precision = precision;
      scenario.optimizer.state_bits = bits;
      const Graph graph = whole_graph(scenario);
      const StateBlock block = state_block(bits);
      for (const char* label : {"embedding.optimizer", "block1.optimizer", "head.optimizer"}) {
        const Op& update = *ops_of(graph, label)[0];
        const Tensor& lead = graph.tensor_of(update.writes[0].value);
        EXPECT_EQ(update.cut_bytes, block.elements * size_of(lead.type));
        EXPECT_EQ(lead.bytes % update.cut_bytes, 0);
        for (const Field& field : lead.layout->fields)
          EXPECT_EQ(field.offset / size_of(DType::F32) % block.elements, 0) << field.name;
        const std::string state = lead.name.substr(0, lead.name.find('.')) + ".adam_v";
        const ByteRange part = range_of(graph, update, state, {lead.bytes - update.cut_bytes, update.cut_bytes});
        EXPECT_EQ(part, (ByteRange{(lead.bytes / update.cut_bytes - 1) * block.bytes, block.bytes}));
      }
    }
}

TEST(WorkloadGraph, AnUpdateOfQuantisedStatesMovesTheirBytes) {
  Scenario scenario = small_scenario("gpt");
  scenario.workload.precision = DType::BF16;
  scenario.optimizer.state_bits = 8;
  const Graph graph = whole_graph(scenario);
  const Op& update = *ops_of(graph, "block0.optimizer")[0];
  const std::int64_t elements = graph.work_of(update).sizes[0], blocks = elements / 256;
  // As in BFloat16UpdatesItsParameterAndWhatItLacksOfTheMaster, but for the moments: 260 bytes for 256 of each.
  EXPECT_EQ(graph.work_of(update).kernels[0].bytes, 10 * elements + 4 * (260 * blocks));
  EXPECT_EQ(graph.work_of(update).kernels[0].elements, elements);
  EXPECT_EQ(update.workspace_bytes, 0);
}

TEST(WorkloadGraph, OpsOfEqualShapeShareTheirWork) {
  const Graph graph = whole_graph(small_scenario("gpt"));
  EXPECT_EQ(ops_of(graph, "block0.forward")[0]->work, ops_of(graph, "block2.forward")[2]->work);
  EXPECT_EQ(ops_of(graph, "block0.optimizer")[0]->work, ops_of(graph, "block2.optimizer")[2]->work);
}

TEST(WorkloadGraph, MeasuredLayersHaveTheirTimes) {
  const Graph graph = whole_graph(small_scenario("layers"));
  EXPECT_EQ(graph.work_of(*ops_of(graph, "layer1.forward")[0]).kernels[0].fixed_ns, 1000);
  EXPECT_EQ(graph.work_of(*ops_of(graph, "layer1.backward")[0]).kernels[0].fixed_ns, 2000);
  const Op& update = *ops_of(graph, "layer1.optimizer")[0];
  EXPECT_EQ(graph.work_of(update).kernels[0].fixed_ns, 3000);
  EXPECT_TRUE(update.may_run_on(Engine::Compute) && update.may_run_on(Engine::CpuOptimizer));
  EXPECT_EQ(graph.value(update.writes[1].value).bytes, 6 * 6400);
}

TEST(WorkloadGraph, DecodingGrowsUntilTheStopToken) {
  Scenario scenario = small_scenario("gpt_decode");
  scenario.workload.batch = 1;
  scenario.workload.keys["stop_token"] = 7;
  Graph graph;
  const auto source = find_workload("gpt_decode")->make(scenario, {});
  EXPECT_TRUE(source->needs_result());
  source->prologue(graph);
  EXPECT_TRUE(source->append_step(graph, 0));
  EXPECT_TRUE(source->append_step(graph, 3));
  EXPECT_FALSE(source->append_step(graph, 7));
  EXPECT_EQ(ops_of(graph, "head.forward").size(), 2u);
  const Op& second = *ops_of(graph, "block1.forward")[1];
  EXPECT_EQ(version_read(graph, second, "block1.kv_cache"), 1);
  EXPECT_EQ(graph.value(second.writes[1].reuses).version, 1);
  // A step's tokens are those that the head chose in the step before.
  const Op &embedding = *ops_of(graph, "embedding.forward")[1], &first_head = *ops_of(graph, "head.forward")[0];
  EXPECT_EQ(first_head.writes[0].value, embedding.reads[1]);
  EXPECT_TRUE(first_head.has_result && first_head.grows && first_head.phase == Phase::Sample);
  EXPECT_EQ(graph.work_of(second).kernels.size(), graph.work_of(*ops_of(graph, "block1.forward")[0]).kernels.size());
}

// Only what the latest step needs is kept: its passes, and the token that it reads.
TEST(WorkloadGraph, DecodingForgetsStepsThatAreOver) {
  Scenario scenario = small_scenario("gpt_decode");
  scenario.workload.batch = 1;
  const Graph graph = whole_graph(scenario);
  std::int64_t passes = 0, tokens = 0;
  for (WorkId id = 0; id < graph.work_count(); ++id) passes += graph.work(id).pass != nullptr;
  EXPECT_EQ(passes, 3 + 3);  // embedding, blocks, head; of the prompt, and of the last token
  for (ValueId id = 0; id < graph.value_count(); ++id)
    tokens += graph.tensor_of(id).name.starts_with("head.") && graph.tensor_of(id).persistent &&
              graph.tensor_of(id).type == DType::I64 && !graph.value(id).superseded;
  EXPECT_EQ(tokens, 1);
}

TEST(WorkloadGraph, DecodingEndsAfterNewTokens) {
  Scenario scenario = small_scenario("gpt_decode");
  scenario.workload.batch = 1;
  EXPECT_EQ(ops_of(whole_graph(scenario), "head.forward").size(), 6u);
}

struct BadOption {
  const char* family;
  void (*change)(Scenario&);
  const char* message;
};

TEST(WorkloadOptions, BadOnesAreRefused) {
  const BadOption all_bad[] = {
      {"gpt", [](Scenario& s) { s.workload.keys["heads"] = 5; },
       "workload.heads: 5 does not divide hidden (48); allowed: "},
      {"gpt", [](Scenario& s) { s.workload.keys["layers"] = 0; }, "workload.layers: missing"},
      {"bert", [](Scenario& s) { s.workload.keys["sequence"] = -1; }, "workload.sequence: -1 is out of range"},
      {"gpt", [](Scenario& s) { s.workload.keys["vocabulary"] = 1L << 40; }, "workload.vocabulary"},
      {"gpt",
       [](Scenario& s) {
         s.workload.batch = 3 << 22, s.workload.keys["sequence"] = 3 << 22, s.workload.keys["hidden"] = 3 << 22;
       },
       "2^48"},
      {"gpt", [](Scenario& s) { s.workload.recompute = "all"; }, "workload.recompute: \"all\" is not known"},
      {"gpt", [](Scenario& s) { s.workload.micro_batches = 0; }, "workload.micro_batches"},
      {"gpt", [](Scenario& s) { s.optimizer.name = "adagrad"; }, "optimizer.name: \"adagrad\" is not known"},
      {"mlp", [](Scenario& s) { s.workload.keys["inputs"] = 0; }, "workload.inputs: missing"},
      {"mlp", [](Scenario& s) { s.workload.recompute = "block"; }, "workload.recompute"},
      {"layers", [](Scenario& s) { s.workload.keys["layer_bytes"] = 100; },
       "workload.layer_bytes: 100 is not a multiple of 64"},
      {"layers", [](Scenario& s) { s.optimizer.clip_norm = 1; }, "optimizer.clip_norm"},
      {"gpt", [](Scenario& s) { s.optimizer.state_bits = 12; }, "optimizer.state_bits: 12 is not known; allowed: 32"},
      {"gpt", [](Scenario& s) { s.optimizer.name = "lion", s.optimizer.state_bits = 8; },
       "optimizer.state_bits: lion keeps no states in 8 bits; allowed: 32, 16"},
      {"gpt", [](Scenario& s) { s.optimizer.name = "adafactor", s.optimizer.state_bits = 16; },
       "optimizer.state_bits: adafactor's states are few"},
      {"gpt", [](Scenario& s) { s.optimizer.name = "adafactor", s.workload.precision = DType::F16; },
       "optimizer.loss_scaling: adafactor skips no steps"},
      {"gpt",
       [](Scenario& s) { s.optimizer.name = "adafactor", s.workload.devices = 2, s.workload.partition = "states"; },
       "workload.partition: adafactor looks at whole tensors"},
      {"layers", [](Scenario& s) { s.optimizer.state_bits = 8; }, "optimizer.state_bits: measured layers"},
      {"gpt_decode", [](Scenario&) {}, "workload.batch: one text"},
      {"gpt_decode", [](Scenario& s) { s.workload.keys["new_tokens"] = 36; },
       "workload.new_tokens, prompt, sequence: prompt and new_tokens"},
  };
  for (const BadOption& bad : all_bad) {
    Scenario scenario = small_scenario(bad.family);
    bad.change(scenario);
    try {
      find_workload(bad.family)->make(scenario, {});
      ADD_FAILURE() << bad.family << ": accepted, but expected: " << bad.message;
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr(bad.message));
    }
  }
}

}  // namespace
}  // namespace tandem
