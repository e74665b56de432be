// FlexGen's linear program on figures that can be done by hand, and its duals beside what more memory and faster copies
// really bring.
#include "plan/placement_program.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/common/scenarios.hpp"

namespace tandem::testing {
namespace {

constexpr double kGB = 1e9;

std::size_t place(Tier tier) { return static_cast<std::size_t>(tier); }

// 100 GB of weights, no cache to speak of, and copies of 10 GB/s: computing takes a second a pass.
BlockFigures weights_alone() {
  BlockFigures f;
  f.new_tokens = 11;
  f.weight_bytes = 100 * kGB;
  f.largest_weight_bytes = f.at_work_bytes = 1 * kGB;
  f.layers = 50;
  f.cpu_attends = true;
  f.prompts.compute_s = f.token.compute_s = 1;
  return f;
}

Scenario machine(double device_gb, double host_gb, double disk_gb) {
  Scenario scenario = gpt_scenario("resident", 1 << 20);
  scenario.limits = {};
  HardwareProfile& m = scenario.machine;
  m.tiers = {};
  m.tiers[place(Tier::Device)].capacity_bytes = std::llround(device_gb * kGB);
  m.tiers[place(Tier::HostPinned)].capacity_bytes = std::llround(host_gb * kGB);
  m.tiers[place(Tier::Disk)].capacity_bytes = std::llround(disk_gb * kGB);
  m.h2d.bytes_per_s = m.d2h.bytes_per_s = 10 * kGB;
  m.disk_read.bytes_per_s = m.disk_write.bytes_per_s = 2 * kGB;
  m.devices_per_host = 1;
  return scenario;
}

double hold(const PlacementProgram::Solution& solution, Hold::Of of) {
  for (const Hold& h : solution.holds)
    if (h.of == of) return h.gain;
  return 0;
}

// 40 GB of the device, of which one is worked on and one comes: 38 of 99 GB stay there, and the others come each pass.
TEST(PlacementProgram, TheDeviceIsFilled) {
  const Scenario scenario = machine(40, 200, 0);
  const auto solution = PlacementProgram{weights_alone(), scenario, 1, false}.solve();
  ASSERT_TRUE(solution);
  EXPECT_EQ(solution->placement.wg, 38);
  EXPECT_EQ(solution->placement.wc, 62);
  EXPECT_NEAR(solution->block_s, 11 * (1 - 38.0 / 99) * 10, 1e-3);
}

// What the host does not hold is read from the disk, at 2 GB/s.
TEST(PlacementProgram, TheDiskHasTheRest) {
  const Scenario scenario = machine(40, 22, 1000);
  const auto solution = PlacementProgram{weights_alone(), scenario, 1, false}.solve();
  ASSERT_TRUE(solution);
  const double disk = 1 - 38.0 / 99 - 0.2;  // 2 of the 22 GB are for what passes through
  EXPECT_NEAR(solution->block_s, 11 * disk * 100 / 2, 1e-3);
  EXPECT_EQ(100 - solution->placement.wg - solution->placement.wc, std::ceil(100 * disk));
}

TEST(PlacementProgram, NothingFits) {
  const Scenario scenario = machine(40, 20, 10);
  EXPECT_FALSE((PlacementProgram{weights_alone(), scenario, 1, false}.solve()));
}

// Keys and values of 40 GB on a host whose bus brings 10 GB/s; the CPU attends to them in 0.1 s.
TEST(PlacementProgram, TheCpuAttendsWhereThatIsSooner) {
  BlockFigures f = weights_alone();
  f.weight_bytes = 10 * kGB;
  f.cache_bytes = 40 * kGB;
  f.token.cache_read_bytes = 40 * kGB;
  f.prompts.cache_written_bytes = 40 * kGB;
  f.token.cpu_attention_s = 0.1;
  const Scenario scenario = machine(14, 100, 0);
  const auto on_device = PlacementProgram{f, scenario, 1, false}.solve(),
             on_cpu = PlacementProgram{f, scenario, 1, true}.solve();
  ASSERT_TRUE(on_device && on_cpu);
  EXPECT_GT(on_device->block_s, 2 * on_cpu->block_s);
  EXPECT_TRUE(on_cpu->placement.cpu_attention);
}

// A GB more, and a GB/s more, beside what the duals say of them.
TEST(PlacementProgram, DualsAreWhatMoreBrings) {
  const BlockFigures f = weights_alone();
  const Scenario scenario = machine(40, 22, 1000);
  const auto base = PlacementProgram{f, scenario, 1, false}.solve();
  ASSERT_TRUE(base);
  const auto gain = [&](const Scenario& better) {
    const auto of = PlacementProgram{f, better, 1, false}.solve();
    return base->block_s / of->block_s - 1;
  };
  EXPECT_NEAR(hold(*base, Hold::Of::DeviceMemory), gain(machine(41, 22, 1000)), 2e-3);
  EXPECT_NEAR(hold(*base, Hold::Of::HostMemory), gain(machine(40, 23, 1000)), 2e-3);
  Scenario faster = scenario;
  faster.machine.disk_read.bytes_per_s += 1 * kGB;
  EXPECT_NEAR(hold(*base, Hold::Of::DiskRead), gain(faster), 2e-3);
  EXPECT_EQ(hold(*base, Hold::Of::ToHost), 0);
}

// Of memory that is not pinned copies are slower: what is pinned is filled first.
TEST(PlacementProgram, PinnedMemoryComesFirst) {
  Scenario scenario = machine(40, 30, 0);
  scenario.machine.tiers[place(Tier::HostPageable)].capacity_bytes = std::llround(200 * kGB);
  scenario.machine.pageable_h2d.bytes_per_s = scenario.machine.pageable_d2h.bytes_per_s = 5 * kGB;
  const auto solution = PlacementProgram{weights_alone(), scenario, 1, false}.solve();
  ASSERT_TRUE(solution);
  const double rest = 100 * (1 - 38.0 / 99) - 30;
  EXPECT_NEAR(solution->block_s, 11 * (30.0 / 10 + rest / 5), 1e-3);
  EXPECT_GT(hold(*solution, Hold::Of::PinnedMemory), 0);
}

}  // namespace
}  // namespace tandem::testing
