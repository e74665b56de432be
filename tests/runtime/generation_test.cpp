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
#include "tests/runtime/generation_runs.hpp"
#include "tests/runtime/serial_interpreter.hpp"

namespace tandem {
namespace {

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
