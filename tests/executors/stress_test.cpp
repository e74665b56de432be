// Hundreds of training steps with random delays before every command: whatever the timing, the bytes are the same.
// TANDEM_STRESS_STEPS: how many (`make nightly`: a thousand).
// The bodies are stand-ins (digest_bodies.hpp), so that a thread sanitizer sees all that runs: LibTorch is not
// instrumented.
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <thread>

#include "core/run/make_scheduler.hpp"
#include "core/scheduler/contents.hpp"
#include "core/scheduler/driver.hpp"
#include "core/scheduler/happens_before.hpp"
#include "tests/common/fuzz.hpp"
#include "tests/common/policies.hpp"
#include "tests/common/sanitized.hpp"
#include "tests/executors/digest_bodies.hpp"
#include "tests/executors/executor_fixture.hpp"
#include "tests/executors/thread_device.hpp"

namespace tandem {
namespace {

// A sanitizer sees a race in whichever step it comes; steps take ten times as long under one.
const std::int32_t kSteps = test::number_from("TANDEM_STRESS_STEPS", testing::kSanitized ? 50 : 200);
const std::int32_t kDiskSteps = std::max(kSteps / 5, 30);

using testing::device_bytes;
using testing::digest_of;
using testing::find_digest_body;
using testing::kAmple;
using testing::mix;

Scenario tiny_gpt(const std::string& policy, std::int64_t device_bytes) {
  Scenario scenario = testing::tiny_gpt(policy, device_bytes);
  scenario.steps = kSteps;
  return scenario;
}

// Up to 40 us before one command in four, by the command and the seed alone.
void delay(std::uint64_t seed, const Command& command) {
  const std::uint64_t draw = mix(seed ^ static_cast<std::uint64_t>(command.id) * 0x9e3779b97f4a7c15ULL);
  if (draw % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(draw / 4 % 40));
}

// The digests of all parameters and optimizer states after the run, by name.
std::map<std::string, std::uint64_t> train(const Scenario& scenario, std::uint64_t seed,
                                           std::shared_ptr<Device> device = nullptr) {
  const CostModel estimate(scenario.machine);
  const auto scheduler = make_scheduler(scenario, estimate);
  const NoData data;
  LiveExecutorOptions options;
  for (int tier = 0; tier < kTierCount; ++tier)
    options.arena_bytes[static_cast<std::size_t>(tier)] = scheduler->pool(static_cast<Tier>(tier)).capacity_bytes();
  options.scratch_directory = ::testing::TempDir();
  options.library.find_body = &find_digest_body;
  options.device = std::move(device);
  if (seed != 0) options.before_command = [seed](const Command& command) { delay(seed, command); };
  LiveExecutor executor(scheduler->graph(), scenario, data, options);
  Contents contents(scheduler->graph());
  HappensBefore checker(scheduler->graph(), 0, &contents);
  scheduler->forget_what_is_over();  // as in a run of weeks: no worker may look at what is over
  Scheduler* ranks[] = {scheduler.get()};
  drive(ranks, executor, checker);
  EXPECT_EQ(scheduler->failure() + checker.violation() + contents.violation(), "");
  std::map<std::string, std::uint64_t> digests;
  for (TensorId id = 0; id < scheduler->graph().tensor_count(); ++id)
    if (const Tensor& tensor = scheduler->graph().tensor(id); tensor.persistent)
      digests[tensor.name] = digest_of(*scheduler, executor, tensor);
  return digests;
}

// Of an exact policy, plain training's. Where it chooses what the CPU computes, its own, with the same memory: sums are
// made by other ops then, of which these bodies make other bytes.
const std::map<std::string, std::uint64_t>& undisturbed(const std::string& policy) {
  static const std::vector<std::string> kApproximate = testing::approximate_policies();
  static std::map<std::string, std::map<std::string, std::uint64_t>> digests;
  const bool exact = std::find(kApproximate.begin(), kApproximate.end(), policy) == kApproximate.end();
  const bool places = testing::places_work(policy);
  const std::string name = exact && !places ? "resident" : policy;
  if (!digests.contains(name)) digests[name] = train(tiny_gpt(name, places ? device_bytes(policy) : kAmple), 0);
  return digests[name];
}

class StressTest : public ::testing::TestWithParam<std::string> {};

TEST_P(StressTest, DelaysInEveryWorkerChangeNoByte) {
  EXPECT_FALSE(undisturbed(GetParam()).empty());
  EXPECT_EQ(train(tiny_gpt(GetParam(), device_bytes(GetParam())), 1), undisturbed(GetParam()));
}

TEST_P(StressTest, NorDoTheyOnADeviceWithStreams) {
  const Scenario scenario = tiny_gpt(GetParam(), device_bytes(GetParam()));
  const auto device = std::make_shared<testing::ThreadDevice>();
  EXPECT_EQ(train(scenario, 1, device), undisturbed(GetParam()));
  EXPECT_EQ(device->pinned_bytes, 0);
}

class StressDiskTest : public ::testing::TestWithParam<std::string> {};

TEST_P(StressDiskTest, DelaysChangeNoByteOfStatesThatDoNotFitTheHost) {
  Scenario scenario = tiny_gpt(GetParam(), device_bytes(GetParam()));
  scenario.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 128 << 10;
  scenario.machine.tiers[static_cast<std::size_t>(Tier::Disk)].capacity_bytes = 1 << 20;
  scenario.steps = kDiskSteps;
  Scenario ample = tiny_gpt("resident", kAmple);
  ample.steps = kDiskSteps;
  EXPECT_EQ(train(scenario, 1), train(ample, 0));
}

INSTANTIATE_TEST_SUITE_P(DiskPolicies, StressDiskTest,
                         ::testing::Values("on_demand", "zero_infinity", "mlp_offload", "ssdtrain"));

INSTANTIATE_TEST_SUITE_P(Exact, StressTest, ::testing::ValuesIn(testing::exact_policies()));
INSTANTIATE_TEST_SUITE_P(Approximate, StressTest, ::testing::ValuesIn(testing::approximate_policies()));

}  // namespace
}  // namespace tandem
