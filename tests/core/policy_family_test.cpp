// Every policy with every family, with much memory and with little: a run that is in order, or a refusal in words.
#include <gtest/gtest.h>

#include "core/base/errors.hpp"
#include "core/run/policies.hpp"
#include "tests/common/run.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem {
namespace {

Scenario small(const std::string& policy, const std::string& family, std::int64_t device_bytes) {
  Scenario s = testing::gpt_scenario(policy, device_bytes);
  s.machine = testing::round_machine(device_bytes, std::int64_t{1} << 30, std::int64_t{1} << 32);
  s.workload.family = family;
  s.workload.precision = family == "mlp" ? DType::F32 : DType::BF16;
  if (family == "mlp") s.workload.keys["inputs"] = 32, s.workload.keys["classes"] = 10;
  if (family == "gpt_decode") s.workload.batch = 1, s.workload.keys["prompt"] = 4, s.workload.keys["new_tokens"] = 5;
  if (family == "layers") {
    s.workload.keys["layer_bytes"] = 1 << 20;
    for (const char* pass : {"forward", "backward", "optimizer"}) s.workload.keys[pass] = 1'000'000;
  } else if (family != "gpt_decode") {
    s.workload.micro_batches = 2;
  }
  return s;
}

// "" where it ran to its end, else why not.
std::string refusal(const Scenario& scenario) {
  try {
    const testing::NullRun run = testing::run_null(scenario);
    EXPECT_EQ(run.violation, "");
    EXPECT_TRUE(run.scheduler->finished());
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  } catch (const DoesNotFit& error) {
    return error.what();
  }
}

TEST(PolicyFamily, RunsOrSaysWhyNot) {
  for (const PolicyEntry* policy : policies())
    for (const char* family : {"gpt", "bert", "mlp", "layers", "gpt_decode"})
      for (const std::int64_t mib : {64, 8, 4, 2, 1}) {
        SCOPED_TRACE(std::string(policy->name) + " " + family + " " + std::to_string(mib) + " MiB");
        const std::string why = refusal(small(std::string(policy->name), family, mib << 20));
        const bool must_run = mib == 64 && std::string(family) != "gpt_decode";
        EXPECT_TRUE(why.empty() || !must_run) << why;
      }
}

// What lays out memory by updates has none to go by.
TEST(PolicyFamily, DecodingIsRefusedWhereUpdatesDecideAll) {
  for (const char* policy : {"patrickstar", "lsp_offload"}) {
    const std::string why = refusal(small(policy, "gpt_decode", 64 << 20));
    EXPECT_EQ(why.rfind("workload.family: gpt_decode trains nothing", 0), 0U) << why;
  }
  EXPECT_EQ(refusal(small("zero_infinity", "gpt_decode", 64 << 20)), "");
}

}  // namespace
}  // namespace tandem
