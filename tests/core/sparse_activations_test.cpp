// Activations that are stored sparse: which are, how many bytes wait for backward, under which policies, and what is
// refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "core/base/errors.hpp"
#include "core/formats/sparse_blocks.hpp"
#include "core/run/policies.hpp"
#include "tests/common/refusal.hpp"
#include "tests/common/run.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem {
namespace {

// 1024 tokens of 64 numbers: what a linear layer reads is just large enough.
Scenario sparse(const std::string& policy, double keep, std::int64_t device_bytes = 64 << 20) {
  Scenario s = testing::gpt_scenario(policy, device_bytes, 2);
  s.machine = testing::round_machine(device_bytes, std::int64_t{1} << 30, std::int64_t{1} << 32);
  s.workload.batch = 32;
  s.workload.micro_batches = 2;
  s.workload.sparse_activations.keep = keep;
  return s;
}

std::string name_of_saved(const Graph& graph, ValueId value) {
  const std::string& name = graph.tensor_of(value).name;
  return name.substr(name.find('.') + 1);
}

// Inputs of linear layers and of GELU: not what norms, attention and the loss read.
TEST(SparseActivations, AreInputsOfLinearLayersAndActivationFunctions) {
  const testing::NullRun run = testing::run_null(sparse("resident", 0.25));
  EXPECT_EQ(run.violation, "");
  const Graph& graph = run.scheduler->graph();
  std::map<std::string, std::set<std::string>> saved;  // by stage
  for (OpId id = 0; id < graph.op_count(); ++id) {
    const Op& op = graph.op(id);
    if (graph.work_of(op).body != "activations.encode") continue;
    EXPECT_EQ(op.reads.size(), op.writes.size());
    const std::string label(graph.label(op.label));
    for (std::size_t i = 0; i < op.reads.size(); ++i) {
      saved[label].insert(name_of_saved(graph, op.reads[i]));
      const std::int64_t elements = graph.value(op.reads[i]).bytes / size_of(DType::F32);
      EXPECT_EQ(graph.value(op.writes[i].value).bytes, sparse_bytes(elements, 16, size_of(DType::F32)));
      EXPECT_EQ(graph.work_of(op).sizes.at(i + 1), elements);
    }
  }
  EXPECT_THAT(saved, ::testing::Contains(::testing::Key("block0.encode")));
  for (const auto& [label, names] : saved)
    if (label.starts_with("block")) {
      EXPECT_EQ(names, (std::set<std::string>{"gelu", "ln1", "ln2", "up"})) << label;
    }
}

// What forward left is read by the encoder alone; backward reads what was decoded just before it.
TEST(SparseActivations, AreAllThatWaitsForBackward) {
  const testing::NullRun run = testing::run_null(sparse("resident", 0.25));
  const Graph& graph = run.scheduler->graph();
  std::int64_t encodes = 0, decodes = 0;
  for (OpId id = 0; id < graph.op_count(); ++id) {
    const Op& op = graph.op(id);
    encodes += graph.work_of(op).body == "activations.encode";
    if (graph.work_of(op).body == "activations.encode") {
      for (const ValueId read : op.reads) EXPECT_EQ(graph.value(read).readers, 1) << graph.value_name(read);
    }
    if (graph.work_of(op).body != "activations.decode") continue;
    ++decodes;
    EXPECT_EQ(graph.op(id + 1).phase, Phase::Backward);
    for (const Write& write : op.writes) EXPECT_EQ(graph.value(write.value).readers, 1);
  }
  EXPECT_GE(encodes, 2 * 2 * 3);  // blocks, micro-batches, steps
  EXPECT_EQ(encodes, decodes);
}

// What is recomputed is not stored.
TEST(SparseActivations, AreNoneOfRecomputedBlocks) {
  Scenario s = sparse("resident", 0.25);
  s.workload.recompute = "block";
  const testing::NullRun run = testing::run_null(s);
  EXPECT_EQ(run.violation, "");
  const Graph& graph = run.scheduler->graph();
  for (OpId id = 0; id < graph.op_count(); ++id)
    if (graph.work_of(graph.op(id)).body == "activations.encode") {
      EXPECT_FALSE(graph.op_name(id).starts_with("block")) << graph.op_name(id);
    }
}

TEST(SparseActivations, RunUnderEveryPolicyOrSayWhyNot) {
  for (const PolicyEntry* policy : policies())
    for (const std::int64_t mib : {64, 8}) {
      if (policy->name == "learned") continue;  // wants the file of a network
      SCOPED_TRACE(std::string(policy->name) + " " + std::to_string(mib) + " MiB");
      const std::string why = testing::refusal_of(sparse(std::string(policy->name), 0.25, mib << 20));
      EXPECT_TRUE(why.empty() || mib < 64) << why;
    }
}

// Bytes of activations that leave the device and come back.
TEST(SparseActivations, TravelSparse) {
  for (const char* policy : {"ssdtrain", "g10", "on_demand"}) {
    const auto copied = [&](double keep) {
      const bool all_leave = std::string(policy) == "ssdtrain";  // of others, what has no room
      Scenario s = sparse(policy, keep, (all_leave ? 64 : 8) << 20);
      if (all_leave) s.policy.options["offload_blocks"] = "2";
      const testing::NullRun run = testing::run_null(s);
      EXPECT_EQ(run.violation, "");
      const Graph& graph = run.scheduler->graph();
      std::int64_t bytes = 0;
      for (const auto& entry : run.log.entries())
        for (const Command& command : entry.commands)
          if (command.kind == CommandKind::Copy && graph.tensor_of(command.part.value).role == Role::Activation)
            bytes += command.part.bytes;
      return bytes;
    };
    const std::int64_t dense = copied(0), quarter = copied(0.25);
    EXPECT_GT(quarter, 0) << policy;
    // Attention's operands and stages' outputs stay as they are.
    EXPECT_LT(quarter, dense * (std::string(policy) == "ssdtrain" ? 7 : 9) / 10) << policy;
  }
}

TEST(SparseActivations, AreRefusedWhereNothingIsLargeEnough) {
  Scenario s = sparse("resident", 0.25);
  s.workload.batch = 1;
  EXPECT_THAT(testing::refusal_of(s),
              ::testing::HasSubstr("workload.sparse_activations: no stage saves an input of a linear "));
}

}  // namespace
}  // namespace tandem
