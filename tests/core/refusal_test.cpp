// A refusal for want of memory: its numbers do not contradict each other, holes are named where they are the cause, and
// what fits by its bytes fits.
#include <gtest/gtest.h>

#include "core/run/policies.hpp"
#include "tests/common/run.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem::testing {
namespace {

using Bytes = std::array<std::int64_t, kTierCount>;

constexpr std::int64_t kAmpleDevice = std::int64_t{1} << 30, kAmpleHost = std::int64_t{1} << 32;

// Small models of several forms, with and without a disk.
Scenario sized(const std::string& policy, int shape) {
  Scenario s = gpt_scenario(policy, kAmpleDevice, 2 + shape);
  s.machine = round_machine(kAmpleDevice, kAmpleHost, shape % 2 == 1 ? std::int64_t{1} << 34 : 0);
  s.workload.keys["hidden"] = shape % 3 == 0 ? 128 : 64;
  s.workload.keys["vocabulary"] = shape < 3 ? 1000 : 8000;
  s.workload.precision = shape % 4 < 2 ? DType::BF16 : DType::F32;
  s.workload.recompute = shape == 4 ? "none" : "block";
  s.workload.micro_batches = shape == 5 ? 2 : 1;
  return s;
}
constexpr int kShapes = 6;

void set_capacity(Scenario& scenario, Tier tier, std::int64_t bytes) {
  scenario.machine.tiers[static_cast<std::size_t>(tier)].capacity_bytes = bytes;
}

struct Attempt {
  bool done = false;
  Bytes peaks{};
  std::string text;
  OutOfRoom::Figures figures;
};

Attempt attempt(const Scenario& scenario) {
  Attempt result;
  try {
    const NullRun run = run_null(scenario);
    EXPECT_EQ(run.violation, "");
    result.done = true;
    for (std::size_t t = 0; t < kTierCount; ++t)
      result.peaks[t] = run.scheduler->pool(static_cast<Tier>(t)).peak_bytes();
  } catch (const OutOfRoom& refusal) {
    result.text = refusal.what();
    result.figures = refusal.figures();
  }
  return result;
}

class RefusalOf : public ::testing::TestWithParam<std::string> {};

std::vector<std::string> policy_names() {
  std::vector<std::string> names;
  for (const PolicyEntry* entry : policies()) names.emplace_back(entry->name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(All, RefusalOf, ::testing::ValuesIn(policy_names()),
                         [](const auto& name) { return name.param; });

// The number after `words` in the text; -1 where they do not stand.
std::int64_t number_after(const std::string& text, const std::string& words) {
  const std::size_t at = text.find(words);
  return at == std::string::npos ? -1 : std::stoll(text.substr(at + words.size()));
}

TEST_P(RefusalOf, AsksForMoreThanThereIs) {
  int refused = 0;
  for (int shape = 0; shape < kShapes; ++shape) {
    const Scenario ample = sized(GetParam(), shape);
    const Attempt most = attempt(ample);
    ASSERT_TRUE(most.done) << most.text;
    for (const Tier tier : {Tier::Device, Tier::HostPinned})
      for (const int percent : {20, 50, 80, 90, 96, 99}) {
        Scenario scenario = ample;
        set_capacity(scenario, tier, most.peaks[static_cast<std::size_t>(tier)] * percent / 100);
        const Attempt result = attempt(scenario);
        if (result.done) continue;
        ++refused;
        EXPECT_GT(result.figures.least_bytes, result.figures.capacity_bytes) << result.text;
        EXPECT_EQ(number_after(result.text, "would fit in "), result.figures.least_bytes) << result.text;
        EXPECT_NE(result.text.find("at least"), std::string::npos) << result.text;
        EXPECT_EQ(result.text.find("(holes)") != std::string::npos, result.figures.holes) << result.text;
      }
  }
  EXPECT_GT(refused, 0);
}

// With as much of one tier as a run took, however much of the others there is. Plain training moves nothing to the
// host: it may find holes, and says so.
TEST_P(RefusalOf, IsNoneWhereTheBytesAreEnough) {
  for (int shape = 0; shape < kShapes; ++shape) {
    const Scenario ample = sized(GetParam(), shape);
    const Attempt most = attempt(ample);
    for (const Tier tier : {Tier::Device, Tier::HostPinned, Tier::Disk}) {
      const std::int64_t peak = most.peaks[static_cast<std::size_t>(tier)];
      if (peak == 0) continue;
      Scenario scenario = ample;
      set_capacity(scenario, tier, (peak + kPageBytes - 1) / kPageBytes * kPageBytes);
      const Attempt result = attempt(scenario);
      if (GetParam() == "resident")
        EXPECT_TRUE(result.done || result.figures.holes) << result.text;
      else
        EXPECT_TRUE(result.done) << shape << ' ' << result.text;
    }
  }
}

TEST(Refusal, CountsWhatAProductKeepsAndAllRanksOfAHost) {
  Scenario scenario = layers_scenario("zero_infinity", std::int64_t{1} << 34, 4, 64 << 20, 1000, 1000, 1000);
  scenario.workload.devices = 2;
  scenario.machine.devices_per_host = 2;
  scenario.product.kept_bytes[static_cast<std::size_t>(Tier::HostPinned)] = 1 << 20;
  set_capacity(scenario, Tier::HostPinned, 1 << 29);
  const auto fails_at = [&](std::int64_t bytes) {
    set_capacity(scenario, Tier::HostPinned, bytes);
    const CostModel estimate(scenario.machine);
    const auto zero = make_scheduler(scenario, estimate, 0), one = make_scheduler(scenario, estimate, 1);
    NullExecutor::Options options;
    options.ranks = 2;
    NullExecutor executor(options);
    Scheduler* ranks[] = {zero.get(), one.get()};
    NoLog log;
    try {
      drive(ranks, executor, log);
    } catch (const OutOfRoom& refusal) {
      return refusal.figures();
    }
    return OutOfRoom::Figures{};
  };
  // From what is asked for to what is asked for then: every one is larger, and it ends.
  std::int64_t bytes = 1 << 29;
  for (int i = 0; i < 100; ++i) {
    const OutOfRoom::Figures figures = fails_at(bytes);
    if (figures.least_bytes == 0) {
      EXPECT_GT(i, 0);
      return;
    }
    EXPECT_EQ(figures.capacity_bytes, bytes);
    ASSERT_GT(figures.least_bytes, bytes);
    bytes = figures.least_bytes;
  }
  FAIL() << "asks for more and more: " << bytes;
}

TEST(Pool, KnowsItsLongestRow) {
  Pool pool(10 << 12, 1 << 12);
  LaneProgress progress;
  progress.fill(kNoCommand);
  Fence waits, used;
  used.add({Engine::H2D, 3});
  std::array<std::int64_t, 10> at{};
  for (auto& offset : at) offset = *pool.allocate(4096, End::Low, progress, waits);
  EXPECT_EQ(pool.longest_row_bytes(), 0);
  pool.free(at[1], 4096, {}, progress);
  pool.free(at[2], 4096, used, progress);
  pool.free(at[5], 4096, {}, progress);
  EXPECT_EQ(pool.longest_row_bytes(), 2 * 4096);
  EXPECT_EQ(pool.free_bytes(), 3 * 4096);
}

}  // namespace
}  // namespace tandem::testing
