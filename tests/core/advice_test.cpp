// What a refused run is told: memory that was found to be enough by a run, and keys that were found to help.
#include "core/run/advice.hpp"

#include <gtest/gtest.h>

#include "core/run/load.hpp"
#include "core/run/policies.hpp"
#include "tests/common/run.hpp"

namespace tandem::testing {
namespace {

TrialResult try_null(const Scenario& scenario) {
  try {
    run_null(scenario);
    return {TrialResult::Kind::Done, {}};
  } catch (const OutOfRoom& refusal) {
    return {TrialResult::Kind::Refused, refusal.figures()};
  } catch (const ConfigError&) {
    return {};
  }
}

// The whole message of a refusal; "" if there is none.
std::string told(const Scenario& scenario) {
  try {
    run_null(scenario);
  } catch (const OutOfRoom& refusal) {
    return advise(scenario, refusal, try_null);
  }
  return "";
}

Scenario parsed(const std::string& text, const std::vector<std::string>& settings = {}) {
  return parse_scenario(text, "test.yaml", settings);
}

constexpr const char* kSmall =
    "machine: round_numbers\n"
    "limits: {host_bytes: 29MB, disk_bytes: 1MiB, device_bytes: 1GiB}\n"
    "workload: {family: gpt, layers: 8, hidden: 128, heads: 4, vocabulary: 8000, sequence: 32, batch: 1, precision: "
    "bf16, recompute: block}\n"
    "policy: {name: zero_offload}\n"
    "steps: 2\n";

constexpr const char* kWide =
    "machine: rtx_4090\n"
    "workload: {family: gpt, layers: 1, hidden: 64, heads: 1, vocabulary: 256000, sequence: 4096, batch: 4, precision: "
    "bf16}\n"
    "policy: {name: on_demand}\n"
    "steps: 2\n";

std::int64_t would_fit_in(const std::string& text) {
  const std::string words = "would fit in ";
  const std::size_t at = text.find(words);
  EXPECT_NE(at, std::string::npos) << text;
  return at == std::string::npos ? 0 : std::stoll(text.substr(at + words.size()));
}

// With the limit set to the number, the run is done, under every policy.
TEST(Advice, NamesMemoryThatIsEnough) {
  int refused = 0;
  for (const PolicyEntry* policy : policies())
    for (const char* limit : {"limits.host_bytes=29MB", "limits.host_bytes=12MB", "limits.device_bytes=2MiB"}) {
      std::vector<std::string> settings{"limits.host_bytes=1GiB", "policy={name: " + std::string(policy->name) + "}"};
      settings.emplace_back(limit);
      const Scenario scenario = parsed(kSmall, settings);
      try {
        run_null(scenario);
      } catch (const OutOfRoom& refusal) {
        ++refused;
        const Enough enough = find_enough(scenario, refusal.figures(), try_null);
        ASSERT_TRUE(enough.found) << refusal.what();
        std::int64_t raised = 0;
        for (std::size_t tier = 0; tier < kTierCount; ++tier) raised += enough.bytes[tier] > 0;
        const Tier tier = refusal.figures().tier;
        const std::int64_t bytes = enough.bytes[static_cast<std::size_t>(tier)];
        EXPECT_GT(bytes, refusal.figures().capacity_bytes);
        if (raised > 1 || tier == Tier::Disk) continue;
        settings.back() =
            (tier == Tier::Device ? "limits.device_bytes=" : "limits.host_bytes=") + std::to_string(bytes) + "B";
        EXPECT_EQ(try_null(parsed(kSmall, settings)).kind, TrialResult::Kind::Done)
            << policy->name << ' ' << limit << ' ' << settings.back();
      }
    }
  EXPECT_GT(refused, 15);
}

TEST(Advice, SaysWhatIsShortForPeopleAndThenInFull) {
  const std::string text = told(parsed(kSmall));
  EXPECT_TRUE(text.starts_with("does not fit: needs about ")) << text;
  EXPECT_NE(text.find(" MB of host memory, you have 29.0 MB: "), std::string::npos) << text;
  EXPECT_NE(text.find("optimizer.state_bits: 8"), std::string::npos) << text;
  EXPECT_NE(text.find("\n  in full: host_pinned memory of rank 0: "), std::string::npos) << text;
  EXPECT_NE(text.find("capacity 28999680 bytes"), std::string::npos) << text;
  const std::int64_t enough = would_fit_in(text);
  EXPECT_GT(enough, 29'000'000);
  EXPECT_EQ(told(parsed(kSmall, {"limits.host_bytes=" + std::to_string(enough) + "B"})), "");
}

// The output layer's op is too wide for the device under every policy; tiles are what helps.
TEST(Advice, CutsWhatIsTooWide) {
  for (const char* policy : {"on_demand", "resident", "zero_infinity", "balanced"}) {
    const std::string text = told(parsed(kWide, {"policy={name: " + std::string(policy) + "}"}));
    EXPECT_NE(text.find("; fits with workload.loss_tiles: 4"), std::string::npos) << text;
  }
  EXPECT_EQ(told(parsed(kWide, {"workload.loss_tiles=4"})), "");
  EXPECT_NE(told(parsed(kWide, {"workload.loss_tiles=2"})), "");
}

// A block whose linear maps are too wide: tiles of those, not of the loss.
TEST(Advice, CutsTheLinearMapsWhereTheyAreTooWide) {
  const std::string text =
      told(parsed(kSmall, {"limits={device_bytes: 24MiB}", "workload.hidden=1024", "workload.layers=2",
                           "workload.vocabulary=256", "policy={name: zero_infinity}"}));
  EXPECT_NE(text.find("workload.linear_tiles: "), std::string::npos) << text;
  EXPECT_EQ(text.find("workload.loss_tiles: "), std::string::npos) << text;
}

TEST(Advice, RecomputesOrCutsTheBatchWhereActivationsAreTooMany) {
  const std::string text =
      told(parsed(kSmall, {"limits={device_bytes: 30MB}", "workload.recompute=none", "workload.batch=32",
                           "policy={name: resident}", "workload.layers=4", "workload.vocabulary=256"}));
  EXPECT_NE(text.find("workload.recompute: block"), std::string::npos) << text;
  EXPECT_NE(text.find("workload.batch: "), std::string::npos) << text;
}

TEST(Advice, NamesADiskWhereThereIsNone) {
  const Scenario scenario =
      parsed(kSmall, {"limits={host_bytes: 20MB}", "policy={name: zero_infinity}", "machine=v100_vm"});
  EXPECT_NE(told(scenario).find("a disk (machine.tiers.disk)"), std::string::npos) << told(scenario);
}

// What cannot be tried is no promise.
TEST(Advice, SaysAtLeastWhereNoRunFoundOut) {
  const Scenario scenario = parsed(kSmall);
  const OutOfRoom refusal("facts", "outlook",
                          {.tier = Tier::HostPinned, .capacity_bytes = 29'000'000, .least_bytes = 30'000'000});
  const std::string text = advise(scenario, refusal, [](const Scenario&) { return TrialResult{}; });
  EXPECT_NE(text.find("needs at least 30.0 MB of host memory, you have 29.0 MB: 1.00 MB short"), std::string::npos)
      << text;
  EXPECT_NE(text.find("would fit in at least 30000000 bytes"), std::string::npos) << text;
  EXPECT_NE(text.find("no key of the scenario was found that makes it fit"), std::string::npos) << text;
}

}  // namespace
}  // namespace tandem::testing
