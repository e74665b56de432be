// Data parallel for real: two processes with different halves of a batch train as one process with the whole batch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/base/errors.hpp"
#include "runtime/rank_processes.hpp"
#include "runtime/torch_setup.hpp"
#include "runtime/train.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/runtime/rank_bits.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

Scenario gpt_on(std::int64_t devices, const std::string& policy) {
  Scenario s = testing::gpt_scenario(policy, 5 * kMiB / 2, 2);
  s.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 256 * kMiB;
  s.workload.devices = devices;
  s.workload.batch = 4 / devices;
  return s;
}

struct Division {
  std::string partition, policy, precision;
  double clip_norm = 0;
  std::int64_t state_bits = 32, micro_batches = 1;
};

Scenario scenario_of(const Division& d) {
  Scenario s = gpt_on(2, d.policy);
  s.workload.partition = d.partition;
  s.workload.precision = d.precision == "fp16" ? DType::F16 : d.precision == "bf16" ? DType::BF16 : DType::F32;
  s.workload.micro_batches = d.micro_batches;
  s.optimizer.clip_norm = d.clip_norm;
  s.optimizer.state_bits = d.state_bits;
  s.optimizer.weight_decay = 0.1;
  s.optimizer.decay = "matrices";
  s.validation = {.every = 1, .batches = 1};
  return s;
}

// This rank of two, whose other is a process with the same division.
struct FirstOfTwo {
  explicit FirstOfTwo(const Division& d)
      : scenario(scenario_of(d)),
        peers(2, {"--gtest_filter=*DISABLED_SecondOfDivided*", "--gtest_also_run_disabled_tests",
                  "--partition=" + d.partition, "--policy=" + d.policy, "--precision=" + d.precision,
                  "--clip=" + std::to_string(d.clip_norm), "--bits=" + std::to_string(d.state_bits),
                  "--micro=" + std::to_string(d.micro_batches)}),
        training(scenario, options(peers)) {
    training.run();
    peers.finish();
  }
  static TrainOptions options(const RankProcesses& peers) {
    TrainOptions options;
    options.meeting_file = peers.meeting_file();
    return options;
  }
  RankBits bits() { return bits_of(training); }
  RankBits bits_of_peer() const { return read(dump_path(peers.meeting_file(), 1)); }

  Scenario scenario;
  RankProcesses peers;
  Training training;
};

void PrintTo(const Division& d, std::ostream* out) { *out << d.partition << ' ' << d.policy << ' ' << d.precision; }

class DividedRanksTest : public ::testing::TestWithParam<Division> {};

// Each rank's parts of parameters, joined, and each rank's losses are those of ranks that have all.
TEST_P(DividedRanksTest, TrainAsRanksThatHaveAll) {
  Division undivided = GetParam();
  undivided.partition = "none";
  FirstOfTwo run(GetParam()), plain(undivided);
  const RankBits first = run.bits(), second = run.bits_of_peer(), whole = plain.bits(), same = plain.bits_of_peer();
  EXPECT_EQ(whole.at("block0.qkv.weight"), same.at("block0.qkv.weight"));
  EXPECT_EQ(first.at("loss"), whole.at("loss"));
  EXPECT_EQ(second.at("loss"), same.at("loss"));
  EXPECT_NE(first.at("loss"), second.at("loss")) << "did they both train on the same batch?";
  EXPECT_EQ(first.size(), whole.size());
  bool both = false;
  for (const auto& [name, values] : whole) {
    if (name == "loss") continue;
    EXPECT_EQ(first.at(name) + second.at(name), values) << name;
    both |= !first.at(name).empty() && !second.at(name).empty();
  }
  EXPECT_TRUE(both) << "a field that lies across two parts";
}

INSTANTIATE_TEST_SUITE_P(
    Policies, DividedRanksTest,
    ::testing::Values(Division{"states", "zero_offload", "fp32"}, Division{"states", "on_demand", "bf16", 1},
                      Division{"states", "balanced", "fp16"}, Division{"states", "split_update", "bf16", 0, 8},
                      Division{"parameters", "zero_infinity", "fp16", 1}, Division{"parameters", "patrickstar", "bf16"},
                      Division{"parameters", "zero_offload", "fp32", 1}),
    [](const auto& test) { return test.param.partition + "_" + test.param.policy + "_" + test.param.precision; });

// Each micro-batch is reduced by itself, so that sums are taken in another order: one rounding, which Adam's first
// steps turn into at most a small part of the learning rate.
TEST(DividedRanks, AddUpMicroBatches) {
  FirstOfTwo run({.partition = "states", .policy = "zero_offload", .precision = "fp32", .micro_batches = 3}),
      plain({.partition = "none", .policy = "zero_offload", .precision = "fp32", .micro_batches = 3});
  const auto whole = plain.training.parameters();
  const double bound = 0.05 * run.scenario.optimizer.learning_rate * run.scenario.steps;
  for (const auto& [name, values] : run.training.parameters())
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], whole.at(name)[i], bound) << name;
}

// The other process of the tests above.
TEST(TrainRanksPeer, DISABLED_SecondOfDivided) {
  const Scenario scenario =
      scenario_of({argument("partition"), argument("policy"), argument("precision"), std::stod(argument("clip")),
                   std::stoi(argument("bits")), std::stoi(argument("micro"))});
  train_as_told(scenario);
}

class TrainRanksTest : public ::testing::TestWithParam<const char*> {};

TEST_P(TrainRanksTest, TwoProcessesEqualOneWithTheDoubleBatch) {
  const Scenario scenario = gpt_on(2, GetParam());
  RankProcesses peers(2, {"--gtest_filter=*DISABLED_SecondRank*", "--gtest_also_run_disabled_tests",
                          "--policy=" + std::string(GetParam())});
  TrainOptions options;
  options.meeting_file = peers.meeting_file();
  Training first(scenario, options);
  first.run();
  peers.finish();
  RankBits bits = bits_of(first), second = read(dump_path(peers.meeting_file(), 1));
  bits.erase("loss");
  EXPECT_EQ(second.erase("loss"), 1U);
  EXPECT_EQ(bits, second) << "ranks ended with different parameters";

  const Scenario one = gpt_on(1, GetParam());
  Training single(one);
  single.run();
  const auto expected = single.parameters();
  // The sum over the batch is taken in another order: one rounding of a gradient, which Adam's first steps turn into at
  // most a small part of the learning rate.
  const double bound = 0.02 * scenario.optimizer.learning_rate * scenario.steps;
  double largest = 0;
  for (const auto& [name, values] : first.parameters())
    for (std::size_t i = 0; i < values.size(); ++i)
      largest = std::max(largest, std::abs(static_cast<double>(values[i]) - expected.at(name)[i]));
  EXPECT_LE(largest, bound);
  EXPECT_GT(largest, 0) << "two ranks summed like one: did they both train on the same batch?";
}

INSTANTIATE_TEST_SUITE_P(Policies, TrainRanksTest, ::testing::Values("on_demand", "zero_offload"));

// The other process of the test above.
TEST(TrainRanksPeer, DISABLED_SecondRank) { train_as_told(gpt_on(2, argument("policy"))); }

TEST(RankProcessesTest, ARankThatFailsIsNamed) {
  RankProcesses peers(3, {}, "/bin/false");
  try {
    peers.finish();
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("rank 1 ended with exit code 1"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("rank 2 ended with exit code 1"));
  }
}

TEST(RankProcessesTest, AProgramThatIsNotThereIsADeviceError) {
  EXPECT_THROW(RankProcesses(2, {}, "/no/such/program"), DeviceError);
}

TEST(RankProcessesTest, NothingOutlivesIt) {
  std::string meeting_file;
  pid_t process = 0;
  {
    // A program that would go on for ten minutes, with the flags as words that it does not look at.
    const std::string note = ::testing::TempDir() + "/sleeper" + std::to_string(::getpid());
    const RankProcesses peers(2, {"-c", "echo $$ > " + note + "; exec sleep 600"}, "/bin/sh");
    meeting_file = peers.meeting_file();
    std::ofstream(meeting_file) << "x";
    for (int attempt = 0; attempt < 1000 && !(std::ifstream(note) >> process); ++attempt) ::usleep(10'000);
    std::filesystem::remove(note);
    ASSERT_GT(process, 0);
    EXPECT_EQ(::kill(process, 0), 0) << "it was to be running";
  }
  EXPECT_EQ(::kill(process, 0), -1);
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(meeting_file).parent_path()));
}

TEST(RankProcessesTest, ARankThatEndsBeforeTheStartIsNamed) {
  RankProcesses peers(2, {}, "/bin/false");
  std::string message;
  for (int attempt = 0; attempt < 1000 && message.empty(); ++attempt) {
    try {
      peers.require_alive();
      ::usleep(10'000);
    } catch (const DeviceError& error) {
      message = error.what();
    }
  }
  EXPECT_THAT(message, ::testing::HasSubstr("rank 1 ended with exit code 1"));
}

}  // namespace
}  // namespace tandem
