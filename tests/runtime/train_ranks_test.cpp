// Data parallel for real: two processes with different halves of a batch train as one process with the whole batch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/scenario/errors.hpp"
#include "runtime/rank_processes.hpp"
#include "runtime/torch_setup.hpp"
#include "runtime/train.hpp"
#include "tests/common/scenarios.hpp"

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

// The value of --name= on this program's command line, "" if it is not there.
std::string argument(const std::string& name) {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  for (std::string word; std::getline(in, word, '\0');)
    if (word.starts_with("--" + name + "=")) return word.substr(name.size() + 3);
  return "";
}

// The parameters of a rank, as text that shows every bit.
std::string bits_of(Training& training) {
  std::ostringstream out;
  out << std::hexfloat;
  for (const auto& [name, values] : training.parameters())
    for (float value : values) out << value << '\n';
  return out.str();
}

std::string dump_path(const std::string& meeting_file) { return meeting_file + ".rank1"; }

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
  std::ifstream dump(dump_path(peers.meeting_file()));
  const std::string second{std::istreambuf_iterator<char>(dump), std::istreambuf_iterator<char>()};
  EXPECT_FALSE(second.empty());
  EXPECT_EQ(bits_of(first), second) << "ranks ended with different parameters";

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
TEST(TrainRanksPeer, DISABLED_SecondRank) {
  follow_parent();
  const Scenario scenario = gpt_on(2, argument("policy"));
  TrainOptions options;
  options.rank = std::stoi(argument("rank"));
  options.meeting_file = argument("meeting-file");
  Training training(scenario, options);
  training.run();
  std::ofstream(dump_path(options.meeting_file)) << bits_of(training);
}

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
  {
    const RankProcesses peers(2, {"600"}, "/bin/sleep");  // which refuses the flags, or sleeps on: ended either way
    meeting_file = peers.meeting_file();
  }
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(meeting_file).parent_path()));
}

}  // namespace
}  // namespace tandem
