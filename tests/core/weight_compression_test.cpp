// Frozen weights in few bits: what the graph keeps, and when it makes numbers of it; under every policy, for every
// family; and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "core/base/errors.hpp"
#include "core/formats/weight_blocks.hpp"
#include "core/run/policies.hpp"
#include "core/workloads/workload.hpp"
#include "tests/common/refusal.hpp"
#include "tests/common/run.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem {
namespace {

Scenario adapted(const std::string& policy, const std::string& family, std::int64_t device_bytes, std::int64_t bits) {
  Scenario s = testing::gpt_scenario(policy, device_bytes);
  s.machine = testing::round_machine(device_bytes, std::int64_t{1} << 30, std::int64_t{1} << 32);
  s.workload.family = family;
  s.workload.keys = find_workload(family)->keys->small_instance();
  s.workload.precision = family == "mlp" || family == "imported" ? DType::F32 : DType::BF16;
  s.workload.micro_batches = 2;
  s.workload.lora = {4, 8, {"*"}};
  s.workload.compress.weights = bits;
  return s;
}

std::vector<std::string> families_with_adapters() {
  std::vector<std::string> names;
  for (const WorkloadEntry* entry : workloads()) {
    if (entry->network == nullptr) continue;
    try {
      network_of(adapted("resident", std::string(entry->name), 64 << 20, 8));
      names.emplace_back(entry->name);
    } catch (const ConfigError&) {  // has no linear layer, or trains nothing
    }
  }
  return names;
}

// Every frozen bucket is codes, and no pass reads them.
TEST(WeightCompression, KeepsCodesAndNothingElse) {
  for (const std::int64_t bits : {8, 4}) {
    const Scenario s = adapted("resident", "gpt", 64 << 20, bits);
    const testing::NullRun run = testing::run_null(s);
    EXPECT_EQ(run.violation, "");
    const Graph& graph = run.scheduler->graph();
    std::int64_t coded = 0;
    for (TensorId id = 0; id < graph.tensor_count(); ++id) {
      const Tensor& t = graph.tensor(id);
      if (t.role != Role::Parameter) continue;
      const bool trained = t.layout->fields.front().name.find(".lora_") != std::string::npos;
      EXPECT_EQ(t.code_bits, trained ? 0 : bits) << t.name;
      if (trained) continue;
      ++coded;
      EXPECT_EQ(t.bytes, coded_bytes(bits, t.layout->elements)) << t.name;
      for (const Field& field : t.layout->fields)
        EXPECT_EQ(field.offset / size_of(DType::F32) % weight_block(bits).elements, 0) << field.name;
    }
    EXPECT_GT(coded, 2);
    for (OpId id = 0; id < graph.op_count(); ++id)
      for (const ValueId read : graph.op(id).reads)
        if (graph.tensor_of(read).code_bits > 0) {
          EXPECT_EQ(graph.work_of(graph.op(id)).body, "weights.decode") << graph.op_name(id);
        }
  }
}

// Numbers are made for the ops of one stage, one after the other, and not kept from a forward to a backward.
TEST(WeightCompression, MakesNumbersForEachUse) {
  Scenario s = adapted("resident", "gpt", 64 << 20, 4);
  s.workload.recompute = "block";
  const testing::NullRun run = testing::run_null(s);
  const Graph& graph = run.scheduler->graph();
  std::map<std::string, int> decodes;  // in the first step
  std::map<ValueId, std::set<std::string>> readers;
  for (OpId id = 0; id < graph.op_count(); ++id) {
    const Op& op = graph.op(id);
    if (op.step == 0 && graph.work_of(op).body == "weights.decode") ++decodes[std::string(graph.label(op.label))];
    for (const ValueId read : op.reads)
      if (graph.tensor_of(read).name.ends_with(".numbers")) {
        const std::string label(graph.label(op.label));
        readers[read].insert(label.substr(0, label.find('.')));
      }
  }
  EXPECT_FALSE(readers.empty());
  for (const auto& [value, stages] : readers) EXPECT_EQ(stages.size(), 1U) << graph.value_name(value);
  // Two micro-batches; a recompute and its backward share what was made for the first of them.
  EXPECT_EQ(decodes.at("block1.frozen.decode"), 4);
  // Forward alone: nothing before the first adapter goes backward. The output layer is the embedding's weight.
  EXPECT_EQ(decodes.at("embedding.decode"), 4);
}

TEST(WeightCompression, RunsUnderEveryPolicyOrSaysWhyNot) {
  const std::vector<std::string> families = families_with_adapters();
  EXPECT_GT(families.size(), 8U);
  for (const PolicyEntry* policy : policies())
    for (const std::string& family : families)
      for (const std::int64_t mib : {64, 2}) {
        SCOPED_TRACE(std::string(policy->name) + " " + family + " " + std::to_string(mib) + " MiB");
        const std::string why =
            testing::refusal_of(adapted(std::string(policy->name), family, mib << 20, mib == 64 ? 4 : 8));
        EXPECT_TRUE(why.empty() || mib < 64) << why;
      }
}

// Copies to the device are of codes.
TEST(WeightCompression, CopiesAndKeepsLess) {
  const auto copied = [](std::int64_t bits) {
    const testing::NullRun run = testing::run_null(adapted("l2l", "gpt", 64 << 20, bits));
    EXPECT_EQ(run.violation, "");
    const Graph& graph = run.scheduler->graph();
    std::int64_t bytes = 0;
    for (const auto& entry : run.log.entries())
      for (const Command& command : entry.commands)
        if (command.kind == CommandKind::Copy && graph.tensor_of(command.part.value).role == Role::Parameter)
          bytes += command.part.bytes;
    return bytes;
  };
  const std::int64_t plain = copied(0), eight = copied(8), four = copied(4);
  EXPECT_GT(eight, 0);
  EXPECT_LT(eight, plain * 7 / 10);  // of bf16; adapters stay as they are
  EXPECT_LT(four, eight * 8 / 10);
}

void expect_refused(const Scenario& scenario, const std::string& what) {
  EXPECT_THAT(testing::refusal_of(scenario), ::testing::HasSubstr(what));
}

TEST(WeightCompression, IsRefusedWhereItMeansNothing) {
  Scenario all_trained = adapted("resident", "gpt", 64 << 20, 8);
  all_trained.workload.lora = {};
  expect_refused(all_trained, "workload.compress: all weights are trained");
  Scenario misspelt = adapted("resident", "gpt", 64 << 20, 8);
  misspelt.workload.compress.modules = {"block*", "blocks"};
  expect_refused(misspelt,
                 "workload.compress.modules.1: \"blocks\" matches no module that has frozen weights; allowed: ");
  Scenario divided = adapted("resident", "gpt", 64 << 20, 8);
  divided.workload.devices = 2;
  divided.workload.partition = "states";
  expect_refused(divided, "workload.compress: codes are not divided among ranks; allowed: workload.partition none");
}

TEST(WeightCompression, IsOfTheModulesThatAreNamed) {
  Scenario s = adapted("resident", "gpt", 64 << 20, 8);
  s.workload.compress.modules = {"block1"};
  std::set<std::string> coded;
  const Network network = network_of(s);
  for (const NetworkModule& m : network.modules)
    if (m.frozen_bits > 0) coded.insert(m.name);
  EXPECT_EQ(coded, std::set<std::string>{"block1"});
  EXPECT_EQ(testing::refusal_of(s), "");
}

}  // namespace
}  // namespace tandem
