// Samples that ranks divide by tokens, with attention by heads (DeepSpeed-Ulysses: Jacobs et al., 2023): bytes that
// they exchange, activations that they keep, and what cannot be divided so.
#include <gtest/gtest.h>

#include <string>

#include "core/base/errors.hpp"
#include "core/workloads/workload.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/sim/exchanged.hpp"

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
  for (const char* with : {"pipeline", "recompute", "tied", "fold", "tiles"}) {
    SCOPED_TRACE(with);
    Scenario s = gpt(2);
    const std::string what = with;
    s.workload.devices = 2;
    if (what == "pipeline") s.parallel.pipeline = 2, s.workload.micro_batches = 4;
    if (what == "recompute") s.workload.recompute = "block";
    if (what == "tied") s.workload.keys["tied_embedding"] = true;
    if (what == "tiles") s.workload.keys["loss_tiles"] = 4;
    Scenario whole = s;
    whole.workload.parallel = {};
    const Exchanged divided = exchanged_of(s), plain = exchanged_of(whole);
    EXPECT_EQ(divided.flops, plain.flops);
    if (what != "fold") continue;
    s.parallel.fold = true;
    EXPECT_NEAR(exchanged_of(s).step_s, divided.step_s, 1e-6 * divided.step_s);
  }
}

// What is not divided says so, and what would be.
TEST(Ulysses, EveryFamilyIsDividedOrSaysWhyNot) {
  int divided = 0;
  for (const WorkloadEntry* family : workloads()) {
    if (family->network == nullptr) continue;
    SCOPED_TRACE(std::string(family->name));
    Scenario s = gpt(1);
    s.workload.family = family->name;
    s.workload.keys = family->keys->small_instance();
    if (s.workload.keys.has("sequence") && family->name != "imported") s.workload.keys["sequence"] = 36;
    s.workload.precision = family->name == "mlp" || family->name == "imported" ? DType::F32 : DType::BF16;
    const std::int64_t flops = exchanged_of(s).flops;
    s.workload.parallel["sequence"] = s.workload.keys.integer_or("key_heads", 0) == 2 ? 2 : 3;
    const std::string why = refusal(s);
    if (!why.empty()) {
      EXPECT_TRUE(why.starts_with("parallel.sequence: ")) << why;
      EXPECT_NE(why.find("; allowed: 1"), std::string::npos) << why;
      continue;
    }
    EXPECT_EQ(exchanged_of(s).flops, flops);
    ++divided;
  }
  EXPECT_GE(divided, 2);
}

TEST(Ulysses, RefusesWhatItDoesNotDivide) {
  Scenario odd = gpt(2);
  odd.workload.keys["sequence"] = 777;
  EXPECT_EQ(refusal(odd),
            "parallel.sequence: 2 ranks do not divide 777 tokens of a sample evenly; allowed: 1, or a divisor of "
            "workload.sequence");
  Scenario heads = gpt(8);
  EXPECT_EQ(refusal(heads),
            "parallel.sequence: block.attention has 4 heads, and 4 of keys, which 8 ranks do not divide; allowed: 1, "
            "or a divisor of both");
  Scenario both = gpt(2);
  both.workload.tensor = 2;
  EXPECT_NE(refusal(both).find("parallel.tensor: 1"), std::string::npos);
  Scenario offloads = gpt(2);
  offloads.policy.name = "zero_offload";
  EXPECT_NE(refusal(offloads).find("policy: resident"), std::string::npos);
}

}  // namespace
}  // namespace tandem::testing
