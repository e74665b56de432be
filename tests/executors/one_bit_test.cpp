// 1-bit Adam's halves: nothing of the gradients is lost between what is sent and what is kept, and the update by signs
// is Adam's by the numbers that they stand for, on every instruction set and however a field is cut.
#include "core/formats/one_bit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/optimizer/one_bit.hpp"
#include "tests/executors/adam_fixture.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kBlock = 96, kElements = 10 * kBlock + 41;  // the last block and its last word are short
constexpr float kBeta1 = 0.9F;

std::vector<std::uint32_t> no_signs() {
  return std::vector<std::uint32_t>(static_cast<std::size_t>(sign_words(kElements, kBlock)));
}

float sent_at(const std::vector<std::uint32_t>& signs, std::int64_t i) {
  const std::uint32_t* block = signs.data() + i / kBlock * (1 + kBlock / kSignsPerWord);
  const std::int64_t in_block = i % kBlock;
  const bool positive = (block[1 + in_block / kSignsPerWord] >> (in_block % kSignsPerWord) & 1U) != 0;
  return positive ? bits_as_float(block[0]) : -bits_as_float(block[0]);
}

MomentumSpan span_of(std::vector<float>& gradient, std::vector<float>& kept, std::vector<std::uint32_t>& signs) {
  return {.gradient = gradient.data(),
          .kept = kept.data(),
          .signs = signs.data(),
          .elements = kElements,
          .block = kBlock,
          .gradient_weight = 1 - kBeta1};
}

TEST(OneBitTest, SignsStandForTheMeanMagnitude) {
  std::vector<float> gradient = plain_values(kElements, 1e-3F, 1), kept = plain_values(kElements, 1e-3F, 2);
  const std::vector<float> m = kept;
  std::vector<std::uint32_t> signs = no_signs();
  MomentumSpan span = span_of(gradient, kept, signs);
  span.kept_weight = kBeta1;
  compress_momentum(span, 0.5F);
  for (std::int64_t first = 0; first < kElements; first += kBlock) {
    const std::int64_t end = std::min(first + kBlock, kElements);
    const auto momentum = [&](std::int64_t i) {
      return kBeta1 * m[static_cast<std::size_t>(i)] + (1 - kBeta1) * 0.5F * gradient[static_cast<std::size_t>(i)];
    };
    double sum = 0;
    for (std::int64_t i = first; i < end; ++i) sum += std::fabs(momentum(i));
    for (std::int64_t i = first; i < end; ++i) {
      EXPECT_NEAR(sent_at(signs, i), std::copysign(sum / static_cast<double>(end - first), momentum(i)), 1e-9) << i;
      EXPECT_NEAR(kept[static_cast<std::size_t>(i)], momentum(i) - (1 - kBeta1) * sent_at(signs, i), 1e-9) << i;
    }
  }
}

// kept + (1 - b1) sum of what was sent = kept at first + (1 - b1) sum of the gradients.
double largest_loss(bool error_feedback) {
  std::vector<float> kept = plain_values(kElements, 1e-3F, 3);
  std::vector<double> owed(kept.begin(), kept.end());
  std::vector<std::uint32_t> signs = no_signs();
  for (std::uint32_t step = 0; step < 200; ++step) {
    std::vector<float> gradient = plain_values(kElements, 1e-3F, 10 + step);
    MomentumSpan span = span_of(gradient, kept, signs);
    span.error_feedback = error_feedback;
    compress_momentum(span, 1);
    for (std::int64_t i = 0; i < kElements; ++i)
      owed[static_cast<std::size_t>(i)] +=
          (1 - kBeta1) * (static_cast<double>(gradient[static_cast<std::size_t>(i)]) - sent_at(signs, i));
  }
  double largest = 0;
  for (std::size_t i = 0; i < owed.size(); ++i) largest = std::max(largest, std::fabs(owed[i] - kept[i]));
  return largest;
}

TEST(OneBitTest, WhatIsNotSentIsKept) {
  EXPECT_LT(largest_loss(/*error_feedback=*/true), 1e-7);  // rounding, of numbers of 1e-3
  EXPECT_GT(largest_loss(/*error_feedback=*/false), 1e-3);
}

TEST(OneBitTest, MomentumCutAtBlocksGivesTheSameBits) {
  std::vector<float> gradient = plain_values(kElements, 1e-3F, 1), whole = plain_values(kElements, 1e-3F, 2);
  std::vector<float> parts = whole;
  std::vector<std::uint32_t> signs = no_signs(), signs_of_parts = no_signs();
  compress_momentum(span_of(gradient, whole, signs), 1);
  const MomentumSpan span = span_of(gradient, parts, signs_of_parts);
  constexpr std::int64_t kCut = 7 * kBlock;
  compress_momentum(part_of(span, kCut, kElements - kCut), 1);
  compress_momentum(part_of(span, 0, kCut), 1);
  EXPECT_EQ(parts, whole);
  EXPECT_EQ(signs_of_parts, signs);
}

TEST(OneBitTest, ASkippedStepSendsNothing) {
  std::vector<float> gradient(kElements, NAN), kept = plain_values(kElements, 1e-3F, 2);
  const std::vector<float> before = kept;
  std::vector<std::uint32_t> signs(no_signs().size(), 7);
  compress_momentum(span_of(gradient, kept, signs), 0);
  EXPECT_EQ(kept, before);
  EXPECT_EQ(signs, no_signs());
  MomentumSpan first = span_of(gradient, kept, signs);  // after the warm-up: m itself is not what is kept
  first.kept_weight = kBeta1;
  compress_momentum(first, 0);
  for (std::size_t i = 0; i < kept.size(); ++i) EXPECT_EQ(kept[i], kBeta1 * before[i]);
}

// Signs with a scale for each block; every 50th number had no gradient in the warm-up.
struct SignCase {
  explicit SignCase(DType parameter) : numbers(kElements, false, DType::F32, parameter, 0) {
    std::vector<float> gradient = plain_values(kElements, 1e-3F, 4), kept(kElements);
    compress_momentum(span_of(gradient, kept, signs), 1);
    for (std::int64_t i = 0; i < kElements; i += 50) numbers.v.floats()[i] = 0;
  }
  SignSpan span() {
    UpdateSpan masters = numbers.span();
    masters.gradient = nullptr;
    masters.m = masters.v = nullptr;
    return {signs.data(), numbers.v.floats(), kBlock, masters};
  }
  std::vector<std::uint32_t> signs = no_signs();
  AdamCase numbers;
};

UpdateStep step_of() { return one_bit_step({1e-2, kBeta1, 0.999, 1e-8, 0.1, /*decoupled=*/true}, 12, 5); }

TEST(OneBitTest, TheUpdateIsAdamsByWhatWasSent) {
  SignCase c(DType::F32);
  std::vector<float> before(c.numbers.master.floats(), c.numbers.master.floats() + kElements);
  one_bit_update(step_of(), c.span());
  for (std::int64_t i = 0; i < kElements; ++i) {
    const double sent = c.numbers.v.value(i) == 0 ? 0 : sent_at(c.signs, i);
    const double root = std::sqrt(c.numbers.v.value(i) / (1 - std::pow(0.999, 5)));
    const double change = 1e-2 / (1 - std::pow(kBeta1, 12)) * sent / (root + 1e-8);
    const double expected = before[static_cast<std::size_t>(i)] * (1 - 1e-3) - change;
    EXPECT_NEAR(c.numbers.master.value(i), expected, 1e-6 * (std::fabs(expected) + std::fabs(change))) << i;
  }
}

TEST(OneBitTest, EveryInstructionSetAndCutGivesTheSameBits) {
  for (const DType parameter : {DType::F32, DType::BF16}) {
    const SignCase start(parameter);
    SignCase whole = start;
    one_bit_update(step_of(), whole.span(), Isa::Scalar);
    for (const Isa isa : isas()) {
      SignCase got = start;
      one_bit_update(step_of(), got.span(), isa);
      EXPECT_TRUE(got.numbers.same_as(whole.numbers)) << name_of(parameter);
      SignCase parts = start;
      constexpr std::int64_t kCut = 3 * kBlock;
      one_bit_update(step_of(), part_of(parts.span(), 0, kCut), isa);
      one_bit_update(step_of(), part_of(parts.span(), kCut, kElements - kCut), isa);
      EXPECT_TRUE(parts.numbers.same_as(whole.numbers)) << name_of(parameter);
    }
  }
}

}  // namespace
}  // namespace tandem
