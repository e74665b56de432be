// Every policy with every family, with much memory and with little: a run that is in order, or a refusal in words.
#include <gtest/gtest.h>

#include "core/base/errors.hpp"
#include "core/optimizers/optimizer.hpp"
#include "core/run/policies.hpp"
#include "core/workloads/workload.hpp"
#include "tests/common/refusal.hpp"
#include "tests/common/sanitized.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem {
namespace {

Scenario small(const std::string& policy, const std::string& family, std::int64_t device_bytes) {
  Scenario s = testing::gpt_scenario(policy, device_bytes);
  s.machine = testing::round_machine(device_bytes, std::int64_t{1} << 30, std::int64_t{1} << 32);
  s.workload.family = family;
  s.workload.keys = find_workload(family)->keys->small_instance();
  s.workload.precision = family == "mlp" || family == "imported" ? DType::F32 : DType::BF16;
  if (family == "gpt_decode") s.workload.batch = 1;
  if (family != "gpt_decode" && family != "layers") s.workload.micro_batches = 2;
  return s;
}

// With an output layer that is wider inside.
TEST(PolicyFamily, RunsWithAPaddedVocabulary) {
  for (const PolicyEntry* policy : policies())
    for (const char* family : {"gpt", "bert", "t5"})
      for (const std::int64_t mib : {64, 4}) {
        SCOPED_TRACE(std::string(policy->name) + " " + family + " " + std::to_string(mib) + " MiB");
        Scenario scenario = small(std::string(policy->name), family, mib << 20);
        scenario.workload.keys["vocabulary_multiple"] = 64;
        const std::string why = testing::refusal_of(scenario);
        EXPECT_TRUE(why.empty() || mib < 64) << why;
      }
}

// A policy plans as it is made, by a graph that may have what it does not expect: it is refused before.
TEST(PolicyFamily, DividedLayersAreRefusedBeforeAPolicyPlans) {
  for (const PolicyEntry* policy : policies())
    for (const char* key : {"parallel.tensor", "parallel.fold"}) {
      SCOPED_TRACE(std::string(policy->name) + " " + key);
      Scenario s = small(std::string(policy->name), "gpt", std::int64_t{64} << 20);
      s.parallel.pipeline = 2;
      s.workload.tensor = key == std::string("parallel.tensor") ? 2 : 1;
      s.parallel.fold = s.workload.tensor == 1;
      std::string why;
      try {
        policy->make(s);
      } catch (const ConfigError& error) {
        why = error.what();
      }
      EXPECT_EQ(why.starts_with(key), policy->name != "resident") << why;
    }
}

// Much memory and little; without a sanitizer, what is between.
std::vector<std::int64_t> rooms(std::vector<std::int64_t> all) {
  if (testing::kSanitized) all = {all.front(), all.back()};
  return all;
}

TEST(PolicyFamily, RunsOrSaysWhyNot) {
  for (const PolicyEntry* policy : policies())
    for (const WorkloadEntry* entry : workloads())
      for (const std::int64_t mib : rooms({64, 8, 4, 2, 1})) {
        const std::string family(entry->name);
        SCOPED_TRACE(std::string(policy->name) + " " + family + " " + std::to_string(mib) + " MiB");
        const std::string why = testing::refusal_of(small(std::string(policy->name), family, mib << 20));
        const bool must_run = mib == 64 && family != "gpt_decode";
        EXPECT_TRUE(why.empty() || !must_run) << why;
      }
}

// Every policy with every optimizer, with masters and states of fewer bits or without.
TEST(PolicyFamily, RunsEveryOptimizerOrSaysWhyNot) {
  for (const PolicyEntry* policy : policies())
    for (const OptimizerEntry* optimizer : optimizers())
      for (const std::int64_t mib : rooms({64, 4, 1}))
        for (const bool small_states : {false, true}) {
          const std::string name(policy->name);
          Scenario s = small(name, "gpt", mib << 20);
          s.optimizer.name = optimizer->name;
          s.optimizer.clip_norm = 1;
          s.optimizer.masters = !small_states;
          if (small_states && optimizer->by_element()) s.optimizer.state_bits = 16;
          SCOPED_TRACE(name + " " + s.optimizer.name + " " + std::to_string(mib) + " MiB " +
                       std::to_string(small_states));
          const std::string why = testing::refusal_of(s);
          const bool computes_adam = name == "lsp_offload" || name == "one_bit_adam";
          EXPECT_TRUE(why.empty() || mib < 64 || computes_adam) << why;
          if (computes_adam && !optimizer->library_updates && !small_states) {
            EXPECT_EQ(why.rfind("optimizer.name: " + name + " is a way to compute Adam", 0), 0U) << why;
          }
        }
}

// Stages without weights, shared and frozen ones, biases and convolutions: whatever a family has, states follow.
TEST(PolicyFamily, EveryFamilyHasStatesOfEveryKind) {
  for (const WorkloadEntry* entry : workloads()) {
    if (entry->network == nullptr) continue;
    for (const OptimizerEntry* optimizer : optimizers())
      for (const std::int64_t bits : {32, 16, 8, 4}) {
        if (bits < (optimizer->quantises ? 4 : optimizer->by_element() ? 16 : 32)) continue;
        SCOPED_TRACE(std::string(entry->name) + " " + std::string(optimizer->name) + " " + std::to_string(bits));
        Scenario s = small("zero_offload", std::string(entry->name), std::int64_t{64} << 20);
        s.optimizer.name = optimizer->name;
        s.optimizer.state_bits = bits;
        EXPECT_EQ(testing::refusal_of(s), "");
      }
  }
}

// What lays out memory by updates has none to go by.
TEST(PolicyFamily, DecodingIsRefusedWhereUpdatesDecideAll) {
  for (const char* policy : {"patrickstar", "lsp_offload"}) {
    const std::string why = testing::refusal_of(small(policy, "gpt_decode", 64 << 20));
    EXPECT_EQ(why.rfind("workload.family: gpt_decode trains nothing", 0), 0U) << why;
  }
  EXPECT_EQ(testing::refusal_of(small("zero_infinity", "gpt_decode", 64 << 20)), "");
}

}  // namespace
}  // namespace tandem
