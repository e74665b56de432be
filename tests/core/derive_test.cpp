// What is derived from a program is what was written down by hand for the same network.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/passes.hpp"
#include "core/workloads/common/gpt_plan.hpp"
#include "core/workloads/common/plan.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem {
namespace {

using Mode = GradientTarget::Mode;

Scenario gpt(std::int64_t batch, std::int64_t sequence, std::int64_t hidden, std::int64_t heads, DType type) {
  Scenario s = testing::gpt_scenario("resident", std::int64_t{1} << 30);
  s.workload.batch = batch, s.workload.sequence = sequence, s.workload.hidden = hidden, s.workload.heads = heads;
  s.workload.precision = type;
  return s;
}

std::shared_ptr<const Module> gpt_block(const WorkloadOptions& w) {
  ModuleBuilder m("block", w.precision);
  const LocalId x = m.input("input", Shape({w.batch * w.sequence, w.hidden}, w.precision));
  const LocalId qkv = m.linear("qkv", m.layer_norm("ln1", x, 1e-5), 3 * w.hidden);
  const LocalId attention = m.attention("attention", qkv, w.heads, w.sequence, /*causal=*/true);
  const LocalId middle = m.add("middle", x, m.linear("projection", attention, w.hidden));
  const LocalId up = m.linear("up", m.layer_norm("ln2", middle, 1e-5), 4 * w.hidden);
  m.output(m.add("output", middle, m.linear("down", m.activation("gelu", up, "gelu_tanh"), w.hidden)));
  m.weights_first({"ln1", "ln2"});
  return m.build();
}

std::vector<std::string> text_of(const std::vector<Kernel>& kernels) {
  std::vector<std::string> lines;
  for (const Kernel& k : kernels)
    lines.push_back(std::to_string(static_cast<int>(k.kind)) + " m" + std::to_string(k.m) + " n" + std::to_string(k.n) +
                    " k" + std::to_string(k.k) + " rows" + std::to_string(k.rows) + " flops" + std::to_string(k.flops) +
                    " bytes" + std::to_string(k.bytes) + (k.causal ? " causal" : "") + (k.backward ? " backward" : ""));
  return lines;
}

const OpSpec& op(const TrainingPlan& plan, OpSpecIndex index) { return plan.ops[static_cast<std::size_t>(index)]; }

void expect_same_block(const Scenario& scenario) {
  const TrainingPlan plan = gpt_plan(scenario);
  const StageSpec& written = plan.stages[1];
  const auto module = gpt_block(scenario.workload);
  const Passes derived = derive(module, {.input_gradients = bit(0), .where = {false, scenario.machine.cores}});

  const auto layout = layout_of(*module);
  ASSERT_EQ(layout->fields.size(), written.layout->fields.size());
  for (std::size_t i = 0; i < layout->fields.size(); ++i) {
    EXPECT_EQ(layout->fields[i].name, written.layout->fields[i].name);
    EXPECT_EQ(layout->fields[i].offset, written.layout->fields[i].offset);
  }
  std::vector<std::pair<std::string, std::int64_t>> kept, kept_before;
  for (const Kept& k : derived.kept) kept.emplace_back(k.name, k.shape.bytes());
  for (const TensorSpec& k : written.saved)
    kept_before.emplace_back(k.name == "logsumexp" ? "attention_" + k.name : k.name, k.bytes);
  EXPECT_EQ(kept, kept_before);
  EXPECT_EQ(derived.keeps_inputs, bit(0));
  EXPECT_EQ(derived.keeps_outputs, 0U);

  const auto same = [&](const Pass& pass, OpSpecIndex index) {
    const OpSpec& before = op(plan, index);
    EXPECT_EQ(text_of(pass.kernels), text_of(before.work.kernels)) << before.work.body;
    EXPECT_LE(pass.workspace_bytes, before.workspace_bytes) << before.work.body;
  };
  same(derived.forward, written.forward);
  same(derived.forward_light, written.forward_light);
  same(derived.recompute, written.recompute);
  same(derived.backward, written.backward);
  same(derived.backward_accumulate, written.backward_accumulate);
}

TEST(Derive, ABlockOfGptIsWhatWasWrittenDown) {
  expect_same_block(gpt(2, 32, 64, 4, DType::F32));
  expect_same_block(gpt(3, 33, 264, 3, DType::F32));
  expect_same_block(gpt(1, 1024, 768, 12, DType::F32));
  expect_same_block(gpt(8, 200, 96, 2, DType::F32));
}

// y = x + w2 relu(w1 x), and x is read once more: by a third term.
std::shared_ptr<const Module> residuals(std::int64_t width) {
  ModuleBuilder m("residuals", DType::F32);
  const LocalId x = m.input("input", Shape({4, width}, DType::F32));
  const LocalId branch = m.linear("second", m.activation("relu", m.linear("first", x, width), "relu"), width);
  m.output(m.add("output", m.add("sum", x, branch), m.linear("third", x, width)));
  return m.build();
}

TEST(Derive, NoCallChangesAGradientThatItOrALaterOneReads) {
  for (const bool accumulates : {false, true}) {
    const Passes passes = derive(residuals(96), {.input_gradients = bit(0), .where = {}});
    const Pass& pass = accumulates ? passes.backward_accumulate : passes.backward;
    for (std::size_t i = 0; i < pass.calls.size(); ++i)
      for (const GradientTarget& target : pass.calls[i].input_gradients) {
        if (target.mode != Mode::Add && target.mode != Mode::AddBase && target.mode != Mode::Write) continue;
        EXPECT_NE(target.storage, target.mode == Mode::Write ? kNone : pass.calls[i].output_gradient);
        for (std::size_t later = i + 1; later < pass.calls.size() && target.mode == Mode::Add; ++later)
          EXPECT_NE(pass.calls[later].output_gradient, target.storage) << pass.calls[later].call->name;
      }
    // One operand holds the input's gradient, and it is written.
    EXPECT_NE(pass.find(OperandKind::InputGradient), nullptr);
  }
}

TEST(Derive, WhatIsFrozenHasNoGradientsAndKeepsNothing) {
  const auto trained = residuals(96);
  Module frozen = *trained;
  frozen.trained = false;
  const Passes none = derive(std::make_shared<const Module>(frozen), {});
  EXPECT_TRUE(none.kept.empty());
  EXPECT_TRUE(none.backward.calls.empty());
  const Passes through = derive(std::make_shared<const Module>(frozen), {.input_gradients = bit(0), .where = {}});
  EXPECT_EQ(through.kept.size(), 1U);  // the relu's result
  EXPECT_EQ(through.backward.find(OperandKind::WeightGradient), nullptr);
  EXPECT_EQ(text_of(through.backward.kernels).size(), 3U + 1 + 2);  // three products, relu, two sums
}

}  // namespace
}  // namespace tandem
