// Networks whose frozen weights are kept in few bits train as plain autograd does on the weights that come back from
// the codes, to the bit, losses included; a run that is saved goes on so. And what the bits cost in loss.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/errors.hpp"
#include "core/workloads/workload.hpp"
#include "runtime/checkpoint/resume.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/runtime/exact_run.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

Scenario scenario_of(const std::string& family, const char* policy, std::int64_t bits) {
  Scenario s = testing::gpt_scenario(policy, 512 * kMiB);
  s.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 512 * kMiB;
  s.workload.family = family;
  s.workload.keys = find_workload(family)->keys->small_instance();
  s.workload.batch = 3;
  s.workload.micro_batches = 2;
  s.workload.lora = {4, 8, {"*"}};
  s.workload.compress.weights = bits;
  s.optimizer.clip_norm = 0.5;
  s.steps = 6;
  s.seed = 7;
  return s;
}

// Without linear layers: every second weight is trained.
void train_every_second(Scenario& s) {
  s.workload.lora = {};
  s.workload.compress.weights = 0;
  const Network network = network_of(s);
  std::size_t at = 0;
  for (const NetworkModule& m : network.modules)
    for (std::size_t k = 0; k < m.module->weights.size(); ++k)
      if (at++ % 2 == 1) s.workload.trained.push_back(m.weight_name(k));
}

std::vector<double> train(const Scenario& scenario) {
  Training training(scenario, {});
  run_checked(training);
  return losses_of(training);
}

void expect_losses_of_reference(const Scenario& scenario) {
  const std::vector<double> losses = train(scenario);
  const ReferenceResult reference = train_reference(scenario, *open_data(scenario), {});
  std::vector<double> expected;
  for (const std::vector<double>& step : reference.losses) expected.insert(expected.end(), step.begin(), step.end());
  EXPECT_EQ(losses, expected);
}

std::vector<std::string> families() {
  std::vector<std::string> names;
  for (const WorkloadEntry* family : workloads())
    if (family->network != nullptr && family->name != "imported") names.emplace_back(family->name);
  return names;
}

class CompressedWeights : public ::testing::TestWithParam<std::tuple<std::string, std::int64_t>> {};

TEST_P(CompressedWeights, TrainAsAutogradDoesOnWhatComesBack) {
  const auto& [family, bits] = GetParam();
  Scenario s = scenario_of(family, bits == 8 ? "zero_offload" : "zero_infinity", bits);
  try {
    network_of(s);
  } catch (const ConfigError&) {
    train_every_second(s);
    s.workload.compress.weights = bits;
  }
  expect_trains_as_reference(s);
  expect_losses_of_reference(s);
}

INSTANTIATE_TEST_SUITE_P(Families, CompressedWeights,
                         ::testing::Combine(::testing::ValuesIn(families()), ::testing::Values(8, 4)),
                         [](const auto& test) {
                           return std::get<0>(test.param) + "_" + std::to_string(std::get<1>(test.param));
                         });

TEST(CompressedWeightsOf, SixteenBitsAndRecomputedBlocksDoSo) {
  for (const DType precision : {DType::BF16, DType::F16})
    for (const char* policy : {"resident", "l2l", "protrain"}) {
      SCOPED_TRACE(std::string(name_of(precision)) + " " + policy);
      Scenario s = scenario_of("llama", policy, 4);
      s.workload.precision = precision;
      s.workload.recompute = "block";
      s.workload.compress.modules = {"block*"};
      expect_losses_of_reference(s);
    }
}

// Codes are not saved: they follow from the weights that the run begins with.
TEST(CompressedWeightsOf, ARunThatIsSavedGoesOn) {
  std::string directory = ::testing::TempDir() + "/tandem-codes-XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  Scenario whole = scenario_of("gpt", "zero_infinity", 4);
  Scenario head = whole, tail = whole;
  head.steps = 3;
  head.checkpoint = tail.checkpoint = {directory, 0, 2};
  std::vector<double> losses = train(head);
  resume_from(tail, directory, /*verify=*/true);
  EXPECT_EQ(tail.first_step, 3);
  const std::vector<double> rest = train(tail);
  losses.insert(losses.end(), rest.begin(), rest.end());
  EXPECT_EQ(losses, train(whole));
  Scenario other = whole;
  other.checkpoint = {directory, 0, 2};
  other.workload.compress.weights = 8;
  try {
    resume_from(other, directory, /*verify=*/true);
    ADD_FAILURE() << "not refused";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("workload.compress"), std::string::npos) << error.what();
  }
  std::filesystem::remove_all(directory);
}

// Real text, a few dozen steps: the mean of the last ones' losses, as docs/compression.md has it. The base is as it was
// made, not one that learnt something; losses of two seeds are 0.04 apart.
TEST(CompressedWeightsOf, ASmallGptCostLittleLoss) {
  const auto loss_with = [](std::int64_t bits, std::uint64_t seed) {
    Scenario s = testing::gpt_scenario("resident", 512 * kMiB, 2);
    s.workload.keys["hidden"] = 128;
    s.workload.batch = 8;
    s.workload.lora = {8, 16, {"*"}};
    s.workload.trained = {"embedding.*"};
    s.workload.compress.weights = bits;
    s.seed = seed;
    s.steps = 40;
    const std::vector<double> losses = train(s);
    constexpr std::ptrdiff_t kLast = 10;
    EXPECT_LT(losses.back(), losses.front() - 1);
    return std::accumulate(losses.end() - kLast, losses.end(), 0.0) / kLast;
  };
  double eight = 0, four = 0;
  constexpr int kSeeds = 3;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const double plain = loss_with(0, seed), more8 = loss_with(8, seed) - plain, more4 = loss_with(4, seed) - plain;
    std::printf("seed %d: loss %.4f, in 8 bits %+.4f, in 4 bits %+.4f\n", static_cast<int>(seed), plain, more8, more4);
    eight += more8 / kSeeds, four += more4 / kSeeds;
    EXPECT_NE(more8, 0);
  }
  EXPECT_LT(std::fabs(eight), 0.002);
  EXPECT_LT(std::fabs(four), 0.01);
}

}  // namespace
}  // namespace tandem
