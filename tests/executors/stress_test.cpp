// A thousand training steps with random delays before every command: whatever the timing, the bytes are the same.
// The bodies are stand-ins written here, so that a thread sanitizer sees all that runs (LibTorch is not instrumented):
// each writes a digest of all that it reads.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <map>
#include <thread>

#include "core/run/make_scheduler.hpp"
#include "core/scheduler/contents.hpp"
#include "core/scheduler/driver.hpp"
#include "core/scheduler/happens_before.hpp"
#include "tests/common/policies.hpp"
#include "tests/common/sanitized.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/executors/executor_fixture.hpp"
#include "tests/executors/thread_device.hpp"

namespace tandem {
namespace {

// A sanitizer sees a race in whichever step it comes; steps take ten times as long under one.
constexpr std::int32_t kSteps = testing::kSanitized ? 200 : 1000, kDiskSteps = testing::kSanitized ? 60 : 200;
constexpr std::int64_t kHostBytes = 16 << 20;
// Device bytes: for all; for states, and not all of what is saved; for less than the states.
constexpr std::int64_t kAmple = 1 << 20, kForStates = 180 << 10, kTight = 80 << 10;
constexpr std::size_t kWord = sizeof(std::uint64_t);

std::uint64_t mix(std::uint64_t x) {  // splitmix64's finalizer
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

std::uint64_t word_at(const std::byte* bytes, std::int64_t offset, std::int64_t size) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes + offset, std::min<std::size_t>(kWord, static_cast<std::size_t>(size - offset)));
  return word;
}

void put_word(std::byte* bytes, std::int64_t offset, std::int64_t size, std::uint64_t word) {
  std::memcpy(bytes + offset, &word, std::min<std::size_t>(kWord, static_cast<std::size_t>(size - offset)));
}

// Elementwise, in place where a write reuses a read: the same whatever the parts.
void digest_elements(BodyCall& call) {
  const auto bytes_of = [&](ValueId id) { return call.graph.value(id).bytes; };
  const std::int64_t lead = bytes_of(call.op.writes[0].value);
  for (std::int64_t at = 0; at < call.bytes; at += static_cast<std::int64_t>(kWord)) {
    std::uint64_t digest = static_cast<std::uint64_t>(call.op.step);
    for (std::size_t i = 0; i < call.reads.size(); ++i) {
      const std::int64_t size = bytes_of(call.op.reads[i]);
      digest = mix(digest ^ (size == lead ? word_at(call.reads[i], at, call.bytes) : word_at(call.reads[i], 0, size)));
    }
    for (std::size_t i = 0; i < call.writes.size(); ++i) put_word(call.writes[i], at, call.bytes, mix(digest + i));
  }
}

void digest_whole(BodyCall& call) {
  std::uint64_t digest =
      mix(static_cast<std::uint64_t>(call.op.step) << 32 ^ static_cast<std::uint64_t>(call.op.label));
  for (std::size_t i = 0; i < call.reads.size(); ++i) {
    const std::int64_t size = call.graph.value(call.op.reads[i]).bytes;
    for (std::int64_t at = 0; at < size; at += static_cast<std::int64_t>(kWord))
      digest = mix(digest ^ word_at(call.reads[i], at, size));
  }
  for (std::size_t i = 0; i < call.writes.size(); ++i) {
    const std::int64_t size = call.graph.value(call.op.writes[i].value).bytes;
    for (std::int64_t at = 0; at < size; at += static_cast<std::int64_t>(kWord))
      put_word(call.writes[i], at, size, digest = mix(digest + 1));
  }
}

std::int64_t digest_body(BodyCall& call) {
  call.op.divisible ? digest_elements(call) : digest_whole(call);
  return 0;
}

const BodyEntry& find_digest_body(std::string_view) {
  static constexpr BodyEntry kDigest{"digest", &digest_body};
  return kDigest;
}

// Up to 40 us before one command in four, by the command and the seed alone.
void delay(std::uint64_t seed, const Command& command) {
  const std::uint64_t draw = mix(seed ^ static_cast<std::uint64_t>(command.id) * 0x9e3779b97f4a7c15ULL);
  if (draw % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(draw / 4 % 40));
}

Scenario tiny_gpt(const std::string& policy, std::int64_t device_bytes) {
  Scenario scenario = testing::gpt_scenario(policy, device_bytes, /*layers=*/2);
  scenario.workload.hidden = 16;
  scenario.workload.heads = 2;
  scenario.workload.vocabulary = 64;
  scenario.workload.sequence = 8;
  scenario.workload.micro_batches = 2;
  scenario.optimizer.clip_norm = 1;
  scenario.steps = kSteps;
  // Activations that leave and come back. Not recomputed: these bodies make other bytes of other ops.
  if (policy == "zero_offload" || policy == "cotrain" || policy == "balanced" || policy == "stronghold" ||
      policy == "deep_optimizer_states" || policy == "zero_infinity" || policy == "mlp_offload" ||
      policy == "protrain" || policy == "ssdtrain" || policy == "patrickstar")
    scenario.policy.options["offload_blocks"] = "1";
  if (policy == "l2l") scenario.policy.options = {{"recompute_blocks", "0"}, {"stash", "host"}};
  scenario.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = kHostBytes;
  return scenario;
}

// The least that shows what the policy does.
std::int64_t device_bytes(const std::string& policy) {
  if (policy == "resident") return kAmple;
  return policy == "ssdtrain" || policy == "lsp_offload" ? kForStates : kTight;
}

std::uint64_t digest_of(const Scheduler& scheduler, LiveExecutor& executor, const Tensor& tensor) {
  std::uint64_t digest = static_cast<std::uint64_t>(tensor.bytes);
  for (std::int64_t first = 0; first < tensor.bytes;) {
    const auto [place, count] = scheduler.find(tensor.latest, first);
    EXPECT_GT(count, 0) << tensor.name;
    if (count <= 0) return 0;
    std::vector<std::byte> bytes(static_cast<std::size_t>(count));
    executor.read(place, bytes.data(), count);
    for (std::int64_t at = 0; at < count; at += static_cast<std::int64_t>(kWord))
      digest = mix(digest ^ word_at(bytes.data(), at, count));
    first += count;
  }
  return digest;
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

// Of an exact policy, plain training's.
const std::map<std::string, std::uint64_t>& undisturbed(const std::string& policy) {
  static const std::vector<std::string> kApproximate = testing::approximate_policies();
  static std::map<std::string, std::map<std::string, std::uint64_t>> digests;
  const bool exact = std::find(kApproximate.begin(), kApproximate.end(), policy) == kApproximate.end();
  const std::string name = exact ? "resident" : policy;
  if (!digests.contains(name)) digests[name] = train(tiny_gpt(name, kAmple), 0);
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
