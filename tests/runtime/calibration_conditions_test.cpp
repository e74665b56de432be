// What makes a calibration worthless, from made-up measurements: a busy machine, a throttled device, noise.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "calibration/conditions.hpp"
#include "core/base/errors.hpp"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// 60 s of 4 cores, of which this process took 100 s and others 20 s.
Conditions steady() {
  Conditions c;
  c.first = c.last = {{100e12, 0.01}, {50e9, 0.02}, {50e9, 0.02}, {5e9, 0.1}};
  c.begin = {1000, 200, 1};
  c.end = {1240, 320, 101};
  return c;
}

TEST(CalibrationConditions, ASteadyMachineIsNoTrouble) {
  EXPECT_THAT(troubles(steady()), IsEmpty());
  HardwareProfile profile;
  judge(steady(), /*may_be_busy=*/false, profile);
  EXPECT_FALSE(profile.fingerprint);
}

TEST(CalibrationConditions, OtherProcessesAreCounted) {
  Conditions c = steady();
  c.end.busy_s = 380;  // 180 s in all, of 240
  EXPECT_THAT(troubles(c), ElementsAre("other processes took 33% of the CPU's time (at most 25%)"));
  c.begin.all_s = c.end.all_s = 0;  // the kernel does not say
  EXPECT_THAT(troubles(c), IsEmpty());
}

TEST(CalibrationConditions, ARateThatFallsIsAThrottledDevice) {
  Conditions c = steady();
  c.last.gemm.per_s = 92e12;
  c.last.cpu_optimizer.per_s = 4e9;
  EXPECT_THAT(troubles(c), IsEmpty());
  c.last.gemm.per_s = 85e12;
  c.last.cpu_optimizer.per_s = 7e9;
  EXPECT_THAT(troubles(c), ElementsAre("gemm changed by -15% from the first to the last probe (at most 10%)",
                                       "cpu_optimizer changed by +40% from the first to the last probe (at most 25%)"));
}

TEST(CalibrationConditions, RepeatsFarApartAreTrouble) {
  Conditions c = steady();
  c.last.d2h.spread = 0.8;
  EXPECT_THAT(troubles(c), ElementsAre("repeats of d2h spread over 80% (at most 50%)"));
}

TEST(CalibrationConditions, TroubleIsRefusedOrMarked) {
  Conditions c = steady();
  c.last.gemm.per_s = 50e12;
  HardwareProfile profile;
  profile.fingerprint.emplace();
  try {
    judge(c, /*may_be_busy=*/false, profile);
    FAIL() << "a throttled device was accepted";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("gemm changed by -50%"));
    EXPECT_THAT(error.what(), HasSubstr("--allow-busy"));
  }
  EXPECT_EQ(profile.fingerprint->busy, "");
  judge(c, /*may_be_busy=*/true, profile);
  EXPECT_EQ(profile.fingerprint->busy, "gemm changed by -50% from the first to the last probe (at most 10%)");
}

TEST(CalibrationConditions, ReadsTheKernelsTicks) {
  std::istringstream stat("cpu  100 20 30 1000 50 4 6 40 7 0\ncpu0 1 2 3 4\n");
  const CpuTimes times = read_cpu_times(stat);
  EXPECT_DOUBLE_EQ(times.busy_s / times.all_s, 200.0 / 1250);  // steal is busy, waiting for a disk is idle
  std::istringstream nothing("");
  EXPECT_EQ(read_cpu_times(nothing).all_s, 0);
  EXPECT_GT(cpu_times_now().own_s, 0);
}

}  // namespace
}  // namespace tandem
