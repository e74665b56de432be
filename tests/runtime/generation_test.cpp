// Text that is generated with pages of keys and values is what the network that is trained gives, run whole for each
// token, whatever a policy moves where.
#include "tests/common/generation.hpp"

#include <ATen/ops/argmax.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/workloads/workload.hpp"
#include "runtime/reference/networks.hpp"
#include "runtime/torch_setup.hpp"
#include "tests/runtime/checked_run.hpp"
#include "tests/runtime/serial_interpreter.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20, kVocabulary = 256;
// By step and batch: the tokens of its texts.
using Tokens = std::map<std::pair<std::int32_t, std::int32_t>, std::vector<std::int64_t>>;

struct Kind {
  const char* name;
  const char* family;
  const char* positions;  // null: the family has no other ones
  std::vector<std::pair<const char*, std::int64_t>> sizes;
};

// Odd sizes; all but the first have positions by rotation and heads that share keys.
std::vector<Kind> kinds() {
  return {{"gpt", "gpt", "learned", {{"hidden", 36}, {"heads", 3}, {"sequence", 19}}},
          {"rotary gpt", "gpt", "rotary", {{"hidden", 48}, {"heads", 6}, {"key_heads", 3}, {"sequence", 19}}},
          {"llama",
           "llama",
           nullptr,
           {{"hidden", 48}, {"heads", 6}, {"key_heads", 2}, {"feed_forward", 88}, {"sequence", 17}}},
          {"llama with windows",
           "llama",
           nullptr,
           {{"hidden", 40}, {"heads", 4}, {"key_heads", 1}, {"feed_forward", 72}, {"sequence", 15}, {"window", 8}}}};
}

Scenario scenario_of(const Kind& kind, std::int64_t page, const std::string& policy, std::int64_t device_bytes) {
  Scenario s = testing::generating_scenario(policy, device_bytes);
  s.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 256 * kMiB;
  s.workload.precision = DType::F32;
  s.workload.family = kind.family;
  s.workload.keys["vocabulary"] = kVocabulary;
  for (const auto& [key, size] : kind.sizes) s.workload.keys[key] = size;
  if (kind.positions != nullptr) s.workload.keys["positions"] = kind.positions;
  s.workload.generate["page"] = page;
  s.seed = 7;
  return s;
}

Tokens whole_passes(const Scenario& scenario, const DataSource& data) {
  const c10::AutoGradMode no_grad(false);
  Scenario trained = scenario;
  trained.workload.generate = {};
  trained.workload = completed(trained.workload);
  const ReferenceNetwork network = reference_network(trained);
  std::vector<ReferenceBucket> parameters = network.buckets();
  fill_parameters(parameters, trained);
  const WorkloadOptions& w = scenario.workload;
  const std::int64_t sequence = w.keys.integer("sequence");
  const std::int64_t prompt = w.generate.integer("prompt"), steps = w.generate.integer("new_tokens");
  Tokens chosen;
  for (std::int32_t m = 0; m < w.micro_batches; ++m) {
    std::vector<std::int64_t> prompts(static_cast<std::size_t>(w.batch * prompt)), targets(prompts.size());
    data.next_token_batch({.step = 0, .micro_batch = m}, w.batch, prompt, prompts.data(), targets.data());
    // No token sees those after it: what stands there does not matter.
    const at::Tensor text = at::zeros({w.batch, sequence}, at::kLong), none = at::zeros_like(text);
    text.narrow(1, 0, prompt).copy_(at::from_blob(prompts.data(), {w.batch, prompt}, at::kLong));
    for (std::int64_t step = 0; step < steps; ++step) {
      const std::int64_t length = prompt + step;
      const at::Tensor scores = network.loss(parameters, {text, none}, RandomKey{.draws = false}).scores;
      const at::Tensor next =
          scores.view({w.batch, sequence, -1}).select(1, length - 1).narrow(1, 0, kVocabulary).argmax(1);
      text.select(1, length).copy_(next);
      std::vector<std::int64_t>& to = chosen[{static_cast<std::int32_t>(step), m}];
      for (std::int64_t i = 0; i < w.batch; ++i) to.push_back(next.select(0, i).item<std::int64_t>());
    }
  }
  return chosen;
}

// The first text's of each batch, which is an op's result.
Tokens first_of(const Tokens& all) {
  Tokens firsts;
  for (const auto& [at, tokens] : all) firsts[at] = {tokens.front()};
  return firsts;
}

// All texts', which are what an op with a result writes.
Tokens interpreted(const Scenario& scenario, const DataSource& data) {
  SerialInterpreter run(scenario, data);
  run.run();
  for (const SerialInterpreter::Use& use : run.uses()) EXPECT_LE(use.peak, use.declared) << use.body;
  Tokens made;
  for (OpId id = 0; id < run.graph().op_count(); ++id) {
    const Op& op = run.graph().op(id);
    if (!op.has_result) continue;
    std::vector<std::int64_t>& tokens = made[{op.step, op.micro_batch}];
    tokens.resize(static_cast<std::size_t>(scenario.workload.batch));
    std::memcpy(tokens.data(), run.bytes(op.writes.at(0).value), tokens.size() * sizeof(std::int64_t));
  }
  return made;
}

// `moved`: the roles of what was copied to the device.
Tokens live(const Scenario& scenario, std::set<Role>& moved) {
  TrainOptions options;
  options.poison = true;
  Training training(scenario, options);
  run_checked(training);
  std::map<CommandId, OpId> ops;
  Tokens made;
  for (const auto& entry : training.log().entries()) {
    for (const Event& event : entry.batch.events)
      if (const auto found = ops.find(event.command); found != ops.end()) {
        const Op& op = training.graph().op(found->second);
        made[{op.step, op.micro_batch}] = {event.result};
      }
    for (const Command& command : entry.commands) {
      if (command.kind == CommandKind::Copy && command.target.tier == Tier::Device)
        moved.insert(training.graph().tensor_of(command.part.value).role);
      if (command.kind == CommandKind::Run && training.graph().op(command.op).has_result) ops[command.id] = command.op;
    }
  }
  return made;
}

TEST(GenerationRunTest, EveryTextIsThatOfWholePasses) {
  set_thread_count(1);
  const HashedData data(kVocabulary);
  for (const Kind& kind : kinds())
    for (const std::int64_t page : {1, 4, 9}) {
      const Scenario scenario = scenario_of(kind, page, "resident", 64 * kMiB);
      const Tokens expected = whole_passes(scenario, data);
      ASSERT_EQ(expected.size(), 12U);
      EXPECT_EQ(interpreted(scenario, data), expected) << kind.name << " in pages of " << page;
    }
}

// Nothing is causal then, and the first page has one row.
TEST(GenerationRunTest, APromptMayBeOneToken) {
  set_thread_count(1);
  const HashedData data(kVocabulary);
  for (const Kind& kind : kinds()) {
    Scenario scenario = scenario_of(kind, 3, "resident", 64 * kMiB);
    scenario.workload.generate["prompt"] = 1;
    EXPECT_EQ(interpreted(scenario, data), whole_passes(scenario, data)) << kind.name;
  }
}

struct Placement {
  PolicyOptions policy;
  std::int64_t device_bytes;
  bool moves_pages;
};

std::vector<Placement> placements() {
  const std::map<std::string, std::string> all_on_host = {{"wg", "0"}, {"cg", "0"}, {"hg", "0"}},
                                           on_cpu = {{"wg", "50"}, {"cg", "0"}, {"cpu_attention", "true"}};
  return {{{"resident", {}}, 64 * kMiB, false},
          {{"accelerate", {}}, 64 * kMiB, false},
          {{"deepspeed_inference", {}}, 64 * kMiB, false},
          {{"flexgen", all_on_host}, 64 * kMiB, true},
          {{"flexgen", on_cpu}, 64 * kMiB, false}};
}

TEST(GenerationRunTest, PoliciesMoveWeightsAndPagesAndTextsStayTheSame) {
  set_thread_count(1);
  for (const Kind& kind : kinds())
    for (const std::int64_t page : {1, 4, 9}) {
      const Scenario resident = scenario_of(kind, page, "resident", 64 * kMiB);
      const Tokens expected = first_of(whole_passes(resident, *open_data(resident)));
      for (const Placement& placed : placements()) {
        SCOPED_TRACE(std::string(kind.name) + " in pages of " + std::to_string(page) + " under " + placed.policy.name);
        Scenario scenario = scenario_of(kind, page, placed.policy.name, placed.device_bytes);
        scenario.policy = placed.policy;
        std::set<Role> moved;
        EXPECT_EQ(live(scenario, moved), expected);
        EXPECT_EQ(moved.contains(Role::KvCache), placed.moves_pages);
        EXPECT_EQ(moved.contains(Role::Parameter), true);
      }
    }
}

// Little memory: what there is no room for leaves, and comes back.
TEST(GenerationRunTest, TextsAreTheSameWhereLittleFits) {
  set_thread_count(1);
  for (const Kind& kind : kinds()) {
    const Scenario scenario = scenario_of(kind, 4, "on_demand", kMiB / 4);
    std::set<Role> moved;
    EXPECT_EQ(live(scenario, moved), first_of(whole_passes(scenario, *open_data(scenario)))) << kind.name;
  }
}

}  // namespace
}  // namespace tandem
