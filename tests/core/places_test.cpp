// What a step takes by places, in closed form, and the fastest of them.
#include "core/policies/common/places.hpp"

#include <gtest/gtest.h>

namespace tandem {
namespace {

StepCosts costs() {
  StepCosts c;
  c.device = 100, c.cpu = 200, c.update = 10, c.decoding = 300, c.transforms = 100, c.device_transforms = 40;
  c.micro_batches = 4;
  return c;
}

TEST(Places, CpuAndWorkersCrowdEachOtherWhileBothAreBusy) {
  StepCosts c = costs();
  const Places one{.transforms_on_workers = true, .remote_share = 0, .cpu_micro_batches = 1};
  c.crowding = 1;  // cores for both
  EXPECT_EQ(step_ns(c, one), 400);
  c.crowding = 2;  // all cores wanted twice: one after the other
  EXPECT_EQ(step_ns(c, one), 600);
  c.crowding = 1.25;
  EXPECT_EQ(step_ns(c, one), 400 + 0.25 * 200);
}

TEST(Places, NumbersThatTheCpuComputesWithAreMadeOnWorkers) {
  StepCosts c = costs();
  c.decoding = 0, c.crowding = 1;
  const Places device{.transforms_on_workers = false, .remote_share = 0, .cpu_micro_batches = 1};
  EXPECT_EQ(step_ns(c, device), 3 * 100 + 10 + 0.75 * 40);
  c.transforms = 2000;
  EXPECT_EQ(step_ns(c, device), 500);
}

TEST(Places, TheCpuHelpsWhereItHasCoresForIt) {
  StepCosts c = costs();
  c.crowding = 1;
  EXPECT_EQ(best_places(c, {}).cpu_micro_batches, 1);
  c.crowding = 2;
  EXPECT_EQ(best_places(c, {}).cpu_micro_batches, 0);
  EXPECT_EQ(best_places(c, {.transforms = true, .remote = true, .cpu = false}).cpu_micro_batches, 0);
}

}  // namespace
}  // namespace tandem
