// What tensor parallel leaves whole, divided by tokens (Korthikanti et al., 2022, arXiv 2205.05198): bytes that ranks
// exchange, activations that they keep, and what cannot be divided so.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "analysis/analysis.hpp"
#include "core/base/errors.hpp"
#include "sim/simulate.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/sim/checked_ranks.hpp"
#include "tests/sim/exchanged.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr std::int64_t kTokens = 2 * 32, kHidden = 64, kHeads = 4;  // gpt_scenario's

Scenario gpt(std::int64_t tensor, const char* kind, int layers = 4) {
  Scenario s = gpt_scenario("resident", kGiB, layers);
  s.workload.precision = DType::BF16;
  s.workload.tensor = tensor;
  if (std::string(kind) != "none") s.workload.parallel["sequence_kind"] = kind;
  return s;
}

// Where tensor parallel adds up a value, here is a sum of which each rank gets its rows, and later all rows again: of
// the same bytes. Backward gathers the rows that multiply once more, as nobody kept them (section 4.2.2). For the loss
// both tell two fp32 numbers of each rank and token.
TEST(MegatronSequence, MovesTheBytesOfTensorParallel) {
  const std::int64_t layers = 4, bytes = kTokens * kHidden * 2;
  for (const std::int64_t ranks : {2, 4}) {
    SCOPED_TRACE(ranks);
    const Exchanged plain = exchanged_of(gpt(ranks, "none")), tokens = exchanged_of(gpt(ranks, "megatron"));
    for (const char* phase : {"forward", "backward"}) {
      EXPECT_EQ(tokens.bytes_of(phase, "all_gather"), (2 * layers + 1) * bytes) << phase;
      EXPECT_EQ(tokens.bytes_of(phase, "reduce_scatter_sum"), (2 * layers + 1) * bytes) << phase;
      const std::int64_t of_loss = std::string(phase) == "forward" ? 2 * ranks * kTokens * 4 : 0;
      EXPECT_EQ(tokens.bytes_of(phase, "all_reduce_sum"), of_loss) << phase;
      EXPECT_EQ(tokens.moved(phase), plain.moved(phase)) << phase;
    }
    EXPECT_EQ(tokens.bytes_of("recompute", "all_gather"), (2 * layers + 1) * bytes);
    EXPECT_EQ(tokens.flops, plain.flops);
  }
}

// The paper's table 2, without attention's scores, which a fused kernel does not keep, and without dropout's masks (2
// sbh), which are drawn again: 32 sbh bytes on one rank; with tensor parallel 8 sbh + 24 sbh/t, as each rank keeps both
// norms' inputs and outputs; divided by tokens 32 sbh/t. Beside them two numbers a token of each norm, and one a token
// and head.
TEST(MegatronSequence, KeepsANthOfAllActivations) {
  const std::int64_t sbh = kTokens * kHidden, norms = 2 * 2 * kTokens * 4, heads = kTokens * kHeads * 4;
  const auto kept = [](std::int64_t ranks, const char* kind) {
    return (exchanged_of(gpt(ranks, kind, 4)).kept_bytes - exchanged_of(gpt(ranks, kind, 2)).kept_bytes) / 2;
  };
  EXPECT_EQ(kept(1, "none"), 32 * sbh + norms + heads);
  for (const std::int64_t t : {2, 4}) {
    EXPECT_EQ(kept(t, "none"), 8 * sbh + norms + (24 * sbh + heads) / t) << t;
    EXPECT_EQ(kept(t, "megatron"), (32 * sbh + norms + heads) / t) << t;
  }
}

// Of norms and positions each rank has gradients of its tokens alone: once a step, they are added up.
TEST(MegatronSequence, AddsUpGradientsOfWhatIsDividedByTokens) {
  const std::int64_t layers = 4, weights = 32 * kHidden + layers * 4 * kHidden + 2 * kHidden;
  for (const std::int64_t ranks : {2, 4}) {
    EXPECT_EQ(exchanged_of(gpt(ranks, "megatron")).bytes_of("reduce", "all_reduce_sum"), weights * 2);
    EXPECT_EQ(exchanged_of(gpt(ranks, "none")).bytes_of("reduce", "all_reduce_sum"), 0);
  }
}

// Beside copies, in a pipeline, with parts of states, and recomputing, whose forward is gathered once more, not twice.
TEST(MegatronSequence, Composes) {
  for (const char* with : {"data", "pipeline", "partition", "recompute", "tied", "llama"}) {
    SCOPED_TRACE(with);
    Scenario s = gpt(2, "megatron");
    const std::string what = with;
    if (what == "data") s.workload.devices = 2;
    if (what == "pipeline") s.parallel.pipeline = 2, s.workload.micro_batches = 4;
    if (what == "partition") s.workload.devices = 2, s.workload.partition = "states";
    if (what == "recompute") s.workload.recompute = "block";
    if (what == "tied") s.workload.keys["tied_embedding"] = true;
    if (what == "llama") s.workload.family = "llama", s.workload.keys["feed_forward"] = 128;
    Scenario plain = s;
    plain.workload.parallel = {};
    const Exchanged tokens = exchanged_of(s), whole = exchanged_of(plain);
    EXPECT_EQ(tokens.flops, whole.flops);
    EXPECT_LT(tokens.peak_bytes, whole.peak_bytes);
    if (what != "recompute") continue;
    EXPECT_EQ(tokens.bytes_of("recompute", "all_gather"), (2 * 4 + 1) * kTokens * kHidden * 2);
  }
}

TEST(MegatronSequence, RefusesWhatItDoesNotDivide) {
  Scenario odd = gpt(2, "megatron");
  odd.workload.batch = 1;
  odd.workload.keys["sequence"] = 777;
  EXPECT_EQ(refusal(odd),
            "parallel.sequence_kind: embedding.wpe: 2 ranks do not divide 777 tokens evenly; allowed: a "
            "parallel.tensor that divides workload.batch times sequence");
  odd.workload.family = "llama", odd.workload.keys["feed_forward"] = 128;
  EXPECT_NE(refusal(odd).find("2 ranks do not divide 777 tokens evenly"), std::string::npos);
  odd = gpt(2, "megatron");
  odd.workload.batch = 3;
  odd.workload.keys["sequence"] = 200;
  EXPECT_NE(refusal(odd).find("a rank would have 300 tokens, of sequences of 200; allowed: "), std::string::npos);
  Scenario heads = gpt(2, "megatron");
  heads.workload.keys["heads"] = 1;
  EXPECT_NE(refusal(heads).find("block.attention can be divided neither by columns nor by tokens among 2 ranks"),
            std::string::npos);
  EXPECT_NE(refusal(gpt(1, "megatron")).find("or parallel.tensor of 2 or more"), std::string::npos);
}

}  // namespace
}  // namespace tandem::testing
