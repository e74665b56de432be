// What a framework allocates beside what the policy decides: bytes for each parameter, and blocks of pinned memory.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/errors.hpp"
#include "core/run/load.hpp"
#include "core/scenario/capacity.hpp"
#include "tests/common/run.hpp"

namespace tandem {
namespace {

// Four layers of 1 MiB of fp16 parameters, of which each has 12 bytes of states.
constexpr std::int64_t kMiB = 1 << 20, kParameters = 4 * kMiB / 2;
constexpr const char* kScenario =
    "machine: round_numbers\n"
    "workload: {family: layers, layers: 4, layer_bytes: 1MiB, forward: 1ms, backward: 1ms, optimizer: 1ms}\n"
    "policy: {name: zero_offload}\n"
    "steps: 2\n";

Scenario with(const std::vector<std::string>& changes) { return parse_scenario(kScenario, "product.yaml", changes); }

std::int64_t peak(const Scenario& scenario, Tier tier) {
  const auto run = testing::run_null(scenario);
  EXPECT_EQ(run.violation, "");
  return run.scheduler->pool(tier).peak_bytes();
}

TEST(Product, TakesItsBytesAParameterFromTheCapacity) {
  const Scenario plain = with({});
  const Scenario kept = with({"product.device_bytes_per_parameter=6", "product.host_bytes_per_parameter=2.5"});
  for (const Tier tier : {Tier::Device, Tier::HostPinned})
    EXPECT_EQ(tier_memory_bytes(kept, tier), tier_capacity_bytes(plain, tier));
  EXPECT_EQ(tier_capacity_bytes(kept, Tier::Device), tier_capacity_bytes(plain, Tier::Device) - 6 * kParameters);
  EXPECT_EQ(tier_capacity_bytes(kept, Tier::HostPinned),
            tier_capacity_bytes(plain, Tier::HostPinned) - 5 * kParameters / 2);
  EXPECT_EQ(tier_capacity_bytes(kept, Tier::Disk), tier_capacity_bytes(plain, Tier::Disk));
}

// Two ranks of a host each keep 2 bytes for each of their parameters there: for all of them, or for a half.
TEST(Product, RanksKeepBytesForWhatTheyUpdate) {
  const std::vector<std::string> ranks = {"workload.devices=2", "policy={name: resident}"};
  std::vector<std::string> kept = ranks;
  kept.insert(kept.end(), {"product.device_bytes_per_parameter=2", "product.host_bytes_per_parameter=2"});
  const Scenario whole = with(kept);
  kept.emplace_back("workload.partition=states");
  const Scenario half = with(kept);
  const auto device = tier_capacity_bytes(with(ranks), Tier::Device);
  const auto host = tier_capacity_bytes(with(ranks), Tier::HostPinned);
  EXPECT_EQ(tier_capacity_bytes(whole, Tier::Device), device - 2 * kParameters);
  EXPECT_EQ(tier_capacity_bytes(whole, Tier::HostPinned), host - 2 * 2 * kParameters);
  EXPECT_EQ(tier_capacity_bytes(half, Tier::Device), device - kParameters);
  EXPECT_EQ(tier_capacity_bytes(half, Tier::HostPinned), host - 2 * kParameters);
}

// The least memory of the device, in pages, under which plain training runs.
std::int64_t least_device_bytes(std::vector<std::string> changes) {
  changes.insert(changes.end(), {"policy={name: resident}", ""});
  std::int64_t low = 0, high = 128 * kMiB;
  while (high - low > kPageBytes) {
    const std::int64_t middle = (low + high) / 2 / kPageBytes * kPageBytes;
    changes.back() = "limits.device_bytes=" + std::to_string(middle) + "B";
    try {
      testing::run_null(with(changes));
      high = middle;
    } catch (const DoesNotFit&) {
      low = middle;
    }
  }
  return high;
}

TEST(Product, CountsInThePeakAndInWhatARunNeeds) {
  const std::vector<std::string> kept = {"product.host_bytes_per_parameter=4", "product.device_bytes_per_parameter=6"};
  EXPECT_EQ(peak(with(kept), Tier::HostPinned), peak(with({}), Tier::HostPinned) + 4 * kParameters);
  EXPECT_EQ(peak(with(kept), Tier::Device), peak(with({}), Tier::Device) + 6 * kParameters);
  EXPECT_EQ(least_device_bytes(kept), least_device_bytes({}) + 6 * kParameters);
}

// Of each layer 6 MiB of states take 8; parameters and gradients, 1 MiB, fit their blocks.
TEST(Product, PinnedBlocksArePowersOfTwo) {
  const Scenario exact = with({}), rounded = with({"product.pinned_blocks=power_of_two"});
  EXPECT_EQ(peak(rounded, Tier::HostPinned) - peak(exact, Tier::HostPinned), 4 * 2 * kMiB);
  EXPECT_EQ(peak(rounded, Tier::Device), peak(exact, Tier::Device));
}

}  // namespace
}  // namespace tandem
