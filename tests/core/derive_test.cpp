// What is derived from a program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/model/halves.hpp"

namespace tandem {
namespace {

using Mode = GradientTarget::Mode;

std::vector<std::string> text_of(const std::vector<Kernel>& kernels) {
  std::vector<std::string> lines;
  for (const Kernel& k : kernels)
    lines.push_back(std::to_string(static_cast<int>(k.kind)) + " m" + std::to_string(k.m) + " n" + std::to_string(k.n) +
                    " k" + std::to_string(k.k) + " rows" + std::to_string(k.rows) + " flops" + std::to_string(k.flops) +
                    " bytes" + std::to_string(k.bytes) + (k.causal ? " causal" : "") + (k.backward ? " backward" : ""));
  return lines;
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

// Of the halves: what the first one hands on, no call of it changes once a call was given it, and the second reads it.
TEST(Derive, ABackwardInTwoHandsOnWhatWeightsGradientsAreMadeOf) {
  const DeriveOptions options{.input_gradients = bit(0), .where = {}};
  Passes passes = derive(residuals(96), options);
  derive_halves(passes.forward.module, options, passes);
  const auto operand_at = [](const Pass& pass, std::int32_t storage) {
    const std::int32_t operand = pass.storages[static_cast<std::size_t>(storage)].operand;
    return operand == kNone ? Operand{} : pass.operands[static_cast<std::size_t>(operand)];
  };
  // The third product's and the second's are the output's own; the first's has a place of its own.
  ASSERT_EQ(passes.handed.size(), 1U);
  EXPECT_EQ(passes.handed[0].name, "first_gradient");
  const Pass& inputs = passes.backward_inputs;
  EXPECT_EQ(inputs.find(OperandKind::WeightGradient), nullptr);
  ASSERT_NE(inputs.find(OperandKind::Handed), nullptr);
  bool was_read = false;
  for (const PassCall& call : inputs.calls) {
    EXPECT_EQ(call.wanted.weights, 0U);
    for (const GradientTarget& target : call.input_gradients)
      if (was_read && target.storage != kNone && target.mode != GradientTarget::Mode::Alias) {
        EXPECT_NE(operand_at(inputs, target.storage).kind, OperandKind::Handed) << call.call->name;
      }
    was_read = was_read || operand_at(inputs, call.output_gradient).kind == OperandKind::Handed;
  }
  EXPECT_TRUE(was_read);
  for (const Pass* weights : {&passes.backward_weights, &passes.backward_weights_accumulate}) {
    std::vector<std::string> of;
    for (const PassCall& call : weights->calls) {
      EXPECT_EQ(call.wanted.in, 0U);
      const OperandKind kind = operand_at(*weights, call.output_gradient).kind;
      of.push_back(call.call->name + (kind == OperandKind::Handed ? " handed" : " output"));
      EXPECT_TRUE(kind == OperandKind::Handed || kind == OperandKind::OutputGradient);
    }
    EXPECT_THAT(of, ::testing::ElementsAre("third output", "second output", "first handed"));
    EXPECT_EQ(weights->find(OperandKind::Weights), nullptr) << "products of activations and gradients read no weights";
  }
  std::vector<std::string> both = text_of(inputs.kernels), whole = text_of(passes.backward.kernels);
  for (const std::string& line : text_of(passes.backward_weights.kernels)) both.push_back(line);
  EXPECT_THAT(both, ::testing::UnorderedElementsAreArray(whole));
}

TEST(Derive, WhatIsFrozenHasNoGradientsAndKeepsNothing) {
  const auto trained = residuals(96);
  Module frozen = *trained;
  for (NamedShape& weight : frozen.weights) weight.trained = false;
  const Passes none = derive(std::make_shared<const Module>(frozen), {});
  EXPECT_TRUE(none.kept.empty());
  EXPECT_TRUE(none.backward.calls.empty());
  const Passes through = derive(std::make_shared<const Module>(frozen), {.input_gradients = bit(0), .where = {}});
  EXPECT_EQ(through.kept.size(), 1U);  // the relu's result
  EXPECT_EQ(through.backward.find(OperandKind::WeightGradient), nullptr);
  EXPECT_EQ(text_of(through.backward.kernels).size(), 3U + 1 + 2);  // three products, relu, two sums
}

// One operand stands for what a step finds and for what it leaves; there is no backward through it.
TEST(Derive, WhatIsCarriedIsReadAndWrittenInPlace) {
  const auto build = [](bool trained) {
    ModuleBuilder m("cached", DType::F32);
    const LocalId qkv = m.linear("qkv", m.input("input", Shape({2, 16}, DType::F32)), 48);
    const LocalId cache = m.carried("kv_cache", Shape({2, 10, 16}, DType::F32));
    m.carried("unread", Shape({7}, DType::F32));
    m.output(m.cached_attention("attention", qkv, cache, /*heads=*/2, /*position=*/3));
    if (!trained) m.freeze();
    return m.build();
  };
  const Passes passes = derive(build(false), {});
  EXPECT_TRUE(passes.kept.empty() && passes.backward.calls.empty() && passes.recompute.calls.empty());
  const Operand* carried = passes.forward.find(OperandKind::Carried);
  ASSERT_NE(carried, nullptr);
  EXPECT_EQ(std::count_if(passes.forward.operands.begin(), passes.forward.operands.end(),
                          [](const Operand& o) { return o.kind == OperandKind::Carried; }),
            1)
      << "nobody reads the other";
  const Storage& storage = passes.forward.storages[static_cast<std::size_t>(passes.forward.calls[1].in[1])];
  EXPECT_EQ(&passes.forward.operands[static_cast<std::size_t>(storage.operand)], carried);
  EXPECT_EQ(storage.bytes, 2 * 10 * 16 * 4);
  EXPECT_DEATH(derive(build(true), {}), "no backward through what a step overwrites");
  ModuleBuilder m("read_only", DType::F32);
  const LocalId qkv = m.input("qkv", Shape({2, 48}, DType::F32));
  const LocalId cache = m.input("cache", Shape({2, 10, 16}, DType::F32));
  EXPECT_DEATH(m.cached_attention("attention", qkv, cache, 2, 3), "not carried");
}

// Two modules read one value: the later one's backward writes its gradient, the earlier one's adds.
TEST(Derive, GradientsSoFarAreAddedTo) {
  const Passes passes = derive(residuals(96), {.input_gradients = bit(0), .gradients_so_far = bit(0), .where = {}});
  const Operand* gradient = passes.backward.find(OperandKind::InputGradient);
  ASSERT_NE(gradient, nullptr);
  int added = 0;
  for (const PassCall& call : passes.backward.calls)
    for (const GradientTarget& target : call.input_gradients) {
      if (target.storage == kNone) continue;
      const std::int32_t operand = passes.backward.storages[static_cast<std::size_t>(target.storage)].operand;
      if (operand == kNone || &passes.backward.operands[static_cast<std::size_t>(operand)] != gradient) continue;
      added += target.mode == Mode::Add;
    }
  EXPECT_EQ(added, 3);  // by each of its readers
}

// What leaves by a port has a place of its own, though nothing is computed.
TEST(Derive, AGradientThatOnlyPassesIsCopiedToItsPort) {
  ModuleBuilder m("sum", DType::F32);
  const Shape shape({4, 96}, DType::F32);
  m.output(m.add("output", m.input("a", shape), m.input("b", shape)));
  const Passes passes = derive(m.build(), {.input_gradients = bit(0) | bit(1), .where = {}});
  ASSERT_EQ(passes.backward.calls.size(), 1U);
  for (const GradientTarget& target : passes.backward.calls[0].input_gradients) EXPECT_EQ(target.mode, Mode::Write);
}

}  // namespace
}  // namespace tandem
