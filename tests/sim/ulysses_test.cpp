// Samples that ranks divide by tokens, with attention by heads (DeepSpeed-Ulysses: Jacobs et al., 2023): bytes that
// they exchange, activations that they keep, and what cannot be divided so.
#include <gtest/gtest.h>

#include <string>

#include "core/base/errors.hpp"
#include "core/workloads/workload.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/sim/divided_samples.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr std::int64_t kTokens = 2 * 32, kHidden = 64, kLayers = 4;  // gpt_scenario's

Scenario gpt(std::int64_t ranks) {
  Scenario s = gpt_scenario("resident", kGiB, kLayers);
  s.workload.precision = DType::BF16;
  if (ranks > 1) s.workload.parallel["sequence"] = ranks;
  return s;
}

// Queries, keys, values and what attention makes of them, each of a rank's tokens: 4 sbh/N elements a layer, forward,
// and their gradients backward (section 3.2). Of N ranks each sends (N-1)/N of that: less, the more there are.
TEST(Ulysses, SendsFourValuesALayer) {
  for (const std::int64_t ranks : {2, 4}) {
    const Exchanged e = exchanged_of(gpt(ranks));
    const std::int64_t bytes = kLayers * 4 * kTokens * kHidden * 2 / ranks;
    EXPECT_EQ(e.bytes_of("forward", "all_to_all"), bytes) << ranks;
    EXPECT_EQ(e.bytes_of("backward", "all_to_all"), bytes) << ranks;
  }
}

// Each product once; each rank keeps an Nth of what one rank keeps of a layer, and has all parameters.
TEST(Ulysses, DividesProductsAndActivations) {
  Scenario longer = gpt(1);
  const Exchanged whole = exchanged_of(longer);
  for (const std::int64_t ranks : {2, 4}) {
    const Exchanged divided = exchanged_of(gpt(ranks));
    EXPECT_EQ(divided.flops, whole.flops) << ranks;
    EXPECT_EQ(divided.parameter_bytes, whole.parameter_bytes) << ranks;
    EXPECT_LT(divided.kept_bytes * ranks, whole.kept_bytes + whole.kept_bytes / 4) << ranks;
  }
}

// All ranks have the same weights: gradients are added up among all that have samples, or tokens, of their own.
TEST(Ulysses, AddsUpGradientsAmongAll) {
  for (const std::int64_t copies : {1, 2}) {
    Scenario s = gpt(2);
    s.workload.devices = copies;
    const Exchanged e = exchanged_of(s);
    EXPECT_EQ(e.bytes_of("reduce", "all_reduce"), e.parameter_bytes);
    EXPECT_EQ(e.ranks_of("reduce"), 2 * copies);
    EXPECT_EQ(e.ranks_of("forward"), 2);
  }
}

TEST(Ulysses, Composes) {
  Scenario s = gpt(2);
  s.workload.devices = 2;
  for (const char* with : {"pipeline", "recompute", "tied", "fold", "tiles", "states", "tensor", "all"})
    expect_composes(s, with);
}

// What is not divided says so, and what would be.
TEST(Ulysses, EveryFamilyIsDividedOrSaysWhyNot) {
  expect_divided_or_refused(gpt(1), 36, [](Scenario& s) {
    s.workload.parallel["sequence"] = s.workload.keys.integer_or("key_heads", 0) == 2 ? 2 : 3;
  });
}

TEST(Ulysses, RefusesWhatItDoesNotDivide) {
  expect_refusals_of_divided_samples(gpt(2));
  Scenario heads = gpt(8);
  EXPECT_EQ(refusal(heads),
            "parallel.sequence: block.attention has 4 heads, and 4 of keys, which 8 ranks do not divide; allowed: 1, "
            "or a divisor of both");
}

}  // namespace
}  // namespace tandem::testing
