// Skipped steps of real runs: reports count what the update skipped, and follow the loss scale that it has, under every
// policy that moves the update elsewhere, clipped, accumulated, delayed and resumed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "analysis/analysis.hpp"
#include "runtime/checkpoint/resume.hpp"
#include "runtime/optimizer/update_control.hpp"
#include "runtime/torch_setup.hpp"
#include "runtime/train.hpp"
#include "tests/common/policies.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

struct Skips {
  std::int64_t skipped = 0;
  double reported = 0, real = 0;  // loss scale after the last step
};

Skips train(const Scenario& scenario) {
  set_thread_count(1);
  Training training(scenario);
  training.run();
  const RunRecord record = training.record();
  const Analysis analysis = analyse(record);
  Skips skips{analysis.skipped_steps, analysis.loss_scale.value_or(0)};
  for (TensorId id = 0; id < training.graph().tensor_count(); ++id) {
    if (training.graph().tensor(id).name != "loss_scale") continue;
    LossScale scale{};
    const std::vector<std::byte> bytes = training.latest(id);
    std::memcpy(&scale, bytes.data(), sizeof scale);
    skips.real = scale.scale;
  }
  return skips;
}

Scenario overflowing(const std::string& policy) {
  Scenario s = testing::gpt_scenario(policy, 64 * kMiB, 2);
  s.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 256 * kMiB;
  s.machine.tiers[static_cast<std::size_t>(Tier::Disk)].capacity_bytes = 256 * kMiB;
  s.workload.precision = DType::F16;
  s.optimizer.initial_loss_scale = 0x1p40;  // the first steps are skipped, and then the scale goes up and down
  s.optimizer.loss_scale_interval = 2;
  s.steps = 28;
  return s;
}

void expect_counted(const Scenario& scenario) {
  const Skips skips = train(scenario);
  EXPECT_EQ(skips.reported, skips.real);
  EXPECT_GT(skips.real, 0);
  EXPECT_GT(skips.skipped, 10) << "from 2^40 down";
  EXPECT_LT(skips.skipped, scenario.steps);
}

class SkippedRunTest : public ::testing::TestWithParam<std::string> {};

TEST_P(SkippedRunTest, IsCountedUnderEveryPolicy) { expect_counted(overflowing(GetParam())); }

INSTANTIATE_TEST_SUITE_P(Policies, SkippedRunTest, ::testing::ValuesIn(testing::exact_policies()),
                         [](const auto& test) { return test.param; });

TEST(SkippedRun, IsCountedDelayedClippedAndAccumulated) {
  for (const bool delayed : {false, true}) {
    Scenario s = overflowing("zero_offload");
    if (delayed) s.policy.options["delayed_update"] = "true";
    s.optimizer.clip_norm = 0.5;
    s.workload.micro_batches = 2;
    s.workload.batch = 1;
    expect_counted(s);
  }
}

// A loss scale makes gradients overflow that are fine without it; where there is none, they are not fine.
TEST(SkippedRun, IsNoneWithoutALossScaleButTheEndOfTheRun) {
  Scenario s = overflowing("split_update");
  s.workload.precision = DType::BF16;
  s.optimizer.clip_norm = 0.5;
  s.optimizer.learning_rate = 1e30;
  s.steps = 6;
  EXPECT_THROW(train(s), NotFiniteError);
}

TEST(SkippedRun, AResumedRunGoesOnWithTheScaleThatWasSaved) {
  std::string directory = ::testing::TempDir() + "/tandem-skips-XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  Scenario whole = overflowing("balanced");
  const Skips all = train(whole);
  Scenario first = whole;
  first.steps = 9;
  first.checkpoint = {directory, 0, 1};
  const Skips head = train(first);
  EXPECT_EQ(head.skipped, 9);
  Scenario rest = whole;
  resume_from(rest, directory, /*verify=*/true);
  rest.checkpoint = {directory, 4, 1};  // what it went on from is gone in the end
  const Skips tail = train(rest);
  EXPECT_EQ(head.skipped + tail.skipped, all.skipped);
  EXPECT_EQ(tail.reported, all.reported);
  EXPECT_EQ(tail.reported, tail.real);
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace tandem
