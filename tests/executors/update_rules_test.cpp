// Every rule with states of 32 and 16 bits, with masters and without: every instruction set gives the bits of the
// formula.
#include <gtest/gtest.h>

#include <string>

#include "runtime/optimizer/low_precision.hpp"
#include "runtime/optimizer/rules/rules.hpp"
#include "tests/executors/adam_fixture.hpp"

namespace tandem {
namespace {

constexpr Rule kRules[] = {Rule::Adam, Rule::Lion, Rule::Sgd, Rule::Momentum};

UpdateStep step_of(Rule rule, double weight_decay) {
  UpdateOptions options{1e-3, 0.9, 0.95, 1e-8, weight_decay, rule == Rule::Lion, rule, 0.8};
  return update_step(options, 3, 0.7F);
}

// The operands of a span of any rule: the moments in fp32 or bf16, the parameter with its masters or alone.
struct RuleCase {
  RuleCase(std::int64_t elements, bool corners, DType gradient, DType parameter, std::int64_t state_bits, bool masters)
      : numbers(elements, corners, gradient, parameter, 3),
        m(corners ? corner_values(elements, 5) : plain_values(elements, 0.1F, 5), type_of(state_bits), 3),
        v(corners ? corner_values(elements, 6) : plain_values(elements, 0.1F, 6), type_of(state_bits), 3),
        alone(corners ? corner_values(elements, 7) : plain_values(elements, 1, 7), parameter, 3),
        bits(state_bits),
        has_masters(masters) {}
  static DType type_of(std::int64_t bits) { return bits == 16 ? DType::BF16 : DType::F32; }

  UpdateSpan span() {
    UpdateSpan span = numbers.span();
    span.m = m.data();
    span.v = v.data();
    span.state_bits = bits;
    span.masters = has_masters;
    if (has_masters) return span;
    span.old_parameter = alone.data();
    span.master = nullptr;
    span.master_low = nullptr;
    return span;
  }
  bool same_as(RuleCase& other) {
    return numbers.same_as(other.numbers) && m.same_as(other.m) && v.same_as(other.v) && alone.same_as(other.alone);
  }

  AdamCase numbers;
  Operand m, v, alone;
  std::int64_t bits;
  bool has_masters;
};

float master_of(RuleCase& c, std::int64_t i) {
  if (!c.has_masters) return c.alone.value(i);
  if (c.numbers.parameter_type != DType::BF16) return c.numbers.master.value(i);
  return join_master({c.numbers.old_parameter.bfloat16s()[i], c.numbers.master_low.int16s()[i]});
}

void keep_parameter(RuleCase& c, std::int64_t i, float master) {
  AdamCase& n = c.numbers;
  if (n.parameter_type == DType::BF16) {
    const SplitMaster halves = split_master(master);
    n.parameter.bfloat16s()[i] = halves.parameter;
    if (c.has_masters) n.master_low.int16s()[i] = halves.low;
    return;
  }
  if (n.parameter_type == DType::F16) reinterpret_cast<Float16*>(n.parameter.data())[i] = to_float16(master);
  if (c.has_masters) n.master.floats()[i] = master;
}

void keep_moment(Operand& moment, std::int64_t bits, std::int64_t i, float value) {
  if (bits == 16)
    moment.bfloat16s()[i] = split_master(value).parameter;
  else
    moment.floats()[i] = value;
}

template <class OfRule>
void apply_formula(const UpdateStep& step, RuleCase& c) {
  for (std::int64_t i = 0; i < c.numbers.elements; ++i) {
    UpdatedElement<float> element{master_of(c, i), c.m.value(i), c.v.value(i)};
    OfRule::update(step, c.numbers.gradient.value(i), element);
    if (OfRule::kMoments > 0) keep_moment(c.m, c.bits, i, element.m);
    if (OfRule::kMoments > 1) keep_moment(c.v, c.bits, i, element.v);
    keep_parameter(c, i, element.master);
  }
}

TEST(UpdateRulesTest, EveryInstructionSetGivesTheFormulasBits) {
  for (const Rule rule : kRules)
    for (const double decay : {0.0, 0.1})
      for (const DType parameter : {DType::F32, DType::BF16, DType::F16})
        for (const DType gradient : {DType::F32, parameter})
          for (const std::int64_t bits : {32, 16})
            for (const bool masters : {true, false})
              for (const bool corners : {true, false}) {
                if (!masters && parameter == DType::F32) continue;
                const RuleCase start(333, corners, gradient, parameter, bits, masters);
                RuleCase expected = start;
                const UpdateStep step = step_of(rule, decay);
                with_rule(rule, [&]<class OfRule>() { apply_formula<OfRule>(step, expected); });
                for (const Isa isa : isas()) {
                  RuleCase got = start;
                  update_elements(step, got.span(), isa);
                  EXPECT_TRUE(got.same_as(expected))
                      << "rule " << static_cast<int>(rule) << ", decay " << decay << ", " << name_of(gradient) << " to "
                      << name_of(parameter) << ", " << bits << " bits, masters " << masters << ", corners " << corners
                      << ", isa " << static_cast<int>(isa);
                }
              }
}

TEST(UpdateRulesTest, WhatIsNotFiniteIsSeen) {
  for (const Rule rule : kRules) {
    RuleCase fine(100, false, DType::BF16, DType::BF16, 32, true), bad = fine;
    bad.numbers.gradient.bfloat16s()[77] = {0x7FC0};
    EXPECT_EQ(update_elements(step_of(rule, 0), fine.span()), rule != Rule::Adam) << "v may be negative here";
    EXPECT_FALSE(update_elements(step_of(rule, 0), bad.span()));
  }
}

// A step by hand: p = 1, g = 0.5, m = 0.25.
TEST(UpdateRulesTest, StepsByHand) {
  const auto after = [](Rule rule, double weight_decay) {
    float gradient = 0.5F, master = 1, m = 0.25F;
    const UpdateOptions options{0.125, 0.5, 0.75, 0, weight_decay, rule == Rule::Lion, rule, 0.5};
    update_elements(update_step(options, 9), {.gradient = &gradient, .m = &m, .master = &master, .elements = 1});
    return std::pair(master, m);
  };
  EXPECT_EQ(after(Rule::Sgd, 0), std::pair(1 - 0.125F * 0.5F, 0.25F));
  EXPECT_EQ(after(Rule::Sgd, 0.5), std::pair(1 - 0.125F * (0.5F + 0.5F), 0.25F));
  EXPECT_EQ(after(Rule::Momentum, 0), std::pair(1 - 0.125F * 0.625F, 0.625F));
  // sign(0.5 * 0.25 + 0.5 * 0.5) = 1; m = 0.75 * 0.25 + 0.25 * 0.5
  EXPECT_EQ(after(Rule::Lion, 0), std::pair(0.875F, 0.3125F));
  EXPECT_EQ(after(Rule::Lion, 1), std::pair(0.875F - 0.125F, 0.3125F));
}

}  // namespace
}  // namespace tandem
