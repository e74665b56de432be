// Adam on the CPU: every instruction set gives the bits of the formula, at every length, alignment and cut.
#include "runtime/optimizer/rules/adam.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "runtime/optimizer/low_precision.hpp"
#include "runtime/optimizer/update.hpp"
#include "tests/executors/adam_fixture.hpp"

namespace tandem {
namespace {

constexpr DType kGradients[] = {DType::F32, DType::BF16, DType::F16};
constexpr DType kParameters[] = {DType::F32, DType::BF16, DType::F16};  // fp32: none is written
constexpr float kScale = 0.7F;

std::vector<UpdateStep> steps() {
  std::vector<UpdateStep> all;
  for (const double beta1 : {0.9, 0.3, 0.5})
    for (const double weight_decay : {0.0, 0.1})
      for (const bool decoupled : {false, true}) {
        const UpdateOptions options{1e-3, beta1, 0.999, 1e-8, weight_decay, decoupled};
        all.push_back(update_step(options, 3, kScale));
      }
  return all;
}

// The formula alone, without a loop of the library.
void apply_formula(const UpdateStep& step, AdamCase& c, bool in_place) {
  const UpdateSpan span = c.span(in_place);
  const auto* old_parameter = static_cast<const BFloat16*>(span.old_parameter);
  auto *m = static_cast<float*>(span.m), *v = static_cast<float*>(span.v);
  for (std::int64_t i = 0; i < c.elements; ++i) {
    const bool split = c.parameter_type == DType::BF16;
    const float master = split ? join_master({old_parameter[i], span.master_low[i]}) : span.master[i];
    UpdatedElement<float> element{master, m[i], v[i]};
    AdamRule::update(step, c.gradient.value(i), element);
    m[i] = element.m;
    v[i] = element.v;
    if (!split) span.master[i] = element.master;
    if (split) {
      const SplitMaster halves = split_master(element.master);
      static_cast<BFloat16*>(span.parameter)[i] = halves.parameter;
      span.master_low[i] = halves.low;
    } else if (c.parameter_type == DType::F16) {
      static_cast<Float16*>(span.parameter)[i] = to_float16(element.master);
    }
  }
}

void expect_formula(const UpdateStep& step, const AdamCase& start, const std::string& what) {
  for (const bool in_place : {false, true}) {
    if (in_place && start.parameter_type != DType::BF16) continue;
    AdamCase expected = start;
    apply_formula(step, expected, in_place);
    for (const Isa isa : isas())
      for (const bool stream : {false, true}) {
        AdamCase got = start;
        UpdateSpan span = got.span(in_place);
        span.stream_parameter = stream;
        update_elements(step, span, isa);
        EXPECT_TRUE(got.same_as(expected))
            << what << ", isa " << static_cast<int>(isa) << ", stream " << stream << ", in place " << in_place;
      }
  }
}

TEST(AdamTest, EveryInstructionSetGivesTheFormulasBitsOnAllTypesAndOptions) {
  for (const DType gradient : kGradients)
    for (const DType parameter : kParameters)
      for (const bool corners : {false, true})
        for (const UpdateStep& step : steps())
          expect_formula(step, AdamCase(2'000, corners, gradient, parameter, 0),
                         std::string(name_of(gradient)) + " to " + std::string(name_of(parameter)));
}

TEST(AdamTest, TailsAndMisalignedStartsChangeNoBit) {
  const UpdateStep step = steps().back();
  for (std::int64_t elements = 0; elements <= 70; ++elements)
    for (const std::int64_t misaligned : {0, 1, 5, 16, 31})
      for (const DType gradient : kGradients)
        for (const DType parameter : kParameters)
          expect_formula(step, AdamCase(elements, true, gradient, parameter, misaligned),
                         std::to_string(elements) + " elements " + std::to_string(misaligned) + " past a line");
}

TEST(AdamTest, ASpanCutAtLinesGivesTheSameBits) {
  constexpr std::int64_t kElements = 1'000;
  const UpdateStep step = steps().back();
  for (const DType parameter : kParameters)
    for (std::int64_t cut = 0; cut <= kElements; cut += 16) {
      AdamCase whole(kElements, true, DType::BF16, parameter, 0), parts = whole;
      update_elements(step, whole.span());
      update_elements(step, part_of(parts.span(), 0, cut));
      update_elements(step, part_of(parts.span(), cut, kElements - cut));
      EXPECT_TRUE(parts.same_as(whole)) << "cut at " << cut;
    }
}

TEST(AdamTest, ChunksCoverASpanAtLinesOfEveryOperand) {
  for (const std::int64_t elements : {0, 1, 31, 32, 33, 1'000, 4'096})
    for (const int threads : {1, 2, 3, 7, 64}) {
      AdamCase whole(elements, false, DType::BF16, DType::BF16, 0), parts = whole;
      update_elements(steps().front(), whole.span());
      std::int64_t done = 0;
      for (int thread = 0; thread < threads; ++thread) {
        const UpdateSpan chunk = chunk_of(parts.span(), thread, threads);
        EXPECT_EQ(chunk.m, parts.m.floats() + done);
        EXPECT_EQ(chunk.old_parameter, parts.old_parameter.bfloat16s() + done);
        EXPECT_EQ(chunk.master_low, parts.master_low.int16s() + done);
        EXPECT_TRUE(chunk.elements == 0 || done * size_of(DType::BF16) % 64 == 0) << done;
        EXPECT_LE(chunk.elements, (elements / kChunkElements / threads + 1) * kChunkElements);
        update_elements(steps().front(), chunk);
        done += chunk.elements;
      }
      EXPECT_EQ(done, elements);
      EXPECT_TRUE(parts.same_as(whole));
    }
}

TEST(AdamTest, TheParameterMayTakeTheGradientsStorage) {
  for (const Isa isa : isas()) {
    AdamCase apart(1'000, false, DType::BF16, DType::BF16, 3), together = apart;
    update_elements(steps().front(), apart.span(), isa);
    UpdateSpan span = together.span();
    span.parameter = together.gradient.data();
    update_elements(steps().front(), span, isa);
    EXPECT_TRUE(together.gradient.same_as(apart.parameter));
    EXPECT_TRUE(together.master_low.same_as(apart.master_low));
  }
}

// Two steps by hand in double: g = 1 then 1, beta1 = beta2 = 1/2. m = 1/2, 3/4 and v likewise; corrected, both are 1,
// so that each step moves by the learning rate.
TEST(AdamTest, ConstantGradientMovesByTheLearningRate) {
  const UpdateOptions options{0.125, 0.5, 0.5, 0, 0, false};
  float master = 1, m = 0, v = 0;
  const float gradient = 2;
  for (int step = 1; step <= 2; ++step)
    update_elements(update_step(options, step, 0.5F),
                    {.gradient = &gradient, .m = &m, .v = &v, .master = &master, .elements = 1});
  EXPECT_FLOAT_EQ(master, 0.75F);
  EXPECT_EQ(m, 0.75F);
  EXPECT_EQ(v, 0.75F);
}

TEST(AdamDeathTest, TypesThatAreNoFloatsAreABug) {
  AdamCase c(1, false, DType::F32, DType::F32, 0);
  UpdateSpan span = c.span();
  span.gradient_type = DType::I64;
  EXPECT_DEATH(update_elements(steps().front(), span), "CHECK");
}

}  // namespace
}  // namespace tandem
