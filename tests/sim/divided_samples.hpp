// What holds of samples, or experts, that ranks divide, however these do.
#pragma once

#include <functional>
#include <string>

#include "core/workloads/workload.hpp"
#include "tests/sim/exchanged.hpp"

namespace tandem::testing {

// Of each family, as `one` rank has it, with so many tokens a sample: divided it has the same products, or says why not
// and what would be.
inline void expect_divided_or_refused(const Scenario& one, std::int64_t tokens,
                                      const std::function<void(Scenario&)>& divide) {
  int divided = 0;
  for (const WorkloadEntry* family : workloads()) {
    if (family->network == nullptr) continue;
    SCOPED_TRACE(std::string(family->name));
    Scenario s = one;
    s.workload.family = family->name;
    s.workload.keys = family->keys->small_instance();
    if (s.workload.keys.has("sequence") && family->name != "imported") s.workload.keys["sequence"] = tokens;
    s.workload.precision = family->name == "mlp" || family->name == "imported" ? DType::F32 : DType::BF16;
    const std::int64_t flops = exchanged_of(s).flops;
    divide(s);
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

// Of `two` ranks that divide samples.
inline void expect_refusals_of_divided_samples(const Scenario& two) {
  Scenario odd = two;
  odd.workload.keys["sequence"] = 777;
  EXPECT_EQ(refusal(odd),
            "parallel.sequence: 2 ranks do not divide 777 tokens of a sample evenly; allowed: 1, or a divisor of "
            "workload.sequence");
  Scenario tiles = two;
  tiles.workload.keys["loss_tiles"] = two.workload.batch * two.workload.keys.integer("sequence");
  EXPECT_NE(refusal(tiles).find("or fewer loss_tiles"), std::string::npos);
  Scenario offloads = two;
  offloads.policy.name = "zero_offload";
  EXPECT_NE(refusal(offloads).find("policy: resident"), std::string::npos);
}

// Beside what `what` says, ranks have the products of undivided ones.
inline void expect_composes(Scenario s, const std::string& what) {
  SCOPED_TRACE(what);
  if (what == "pipeline") s.parallel.pipeline = 2, s.workload.micro_batches = 4;
  if (what == "recompute") s.workload.recompute = "block";
  if (what == "micro_batches") s.workload.micro_batches = 3;
  if (what == "tied") s.workload.keys["tied_embedding"] = true;
  if (what == "tiles") s.workload.keys["loss_tiles"] = 4;
  if (what == "validation") s.validation.every = 1;
  if (what == "states") s.workload.partition = "states";
  if (what == "tensor" || what == "all") s.workload.tensor = 2;
  if (what == "all") s.parallel.pipeline = 2, s.workload.micro_batches = 4, s.workload.partition = "optimizer";
  if (what == "all") s.workload.devices = 1;  // as many ranks as before
  Scenario whole = s;
  whole.workload.parallel = {};
  whole.workload.tensor = 1, whole.workload.partition = "none";
  const Exchanged divided = exchanged_of(s), plain = exchanged_of(whole);
  EXPECT_EQ(divided.flops, plain.flops);
  if (what != "fold") return;
  s.parallel.fold = true;
  EXPECT_NEAR(exchanged_of(s).step_s, divided.step_s, 1e-6 * divided.step_s);
}

}  // namespace tandem::testing
