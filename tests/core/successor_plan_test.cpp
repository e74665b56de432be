// A policy that takes over plans for the mix of samples that it begins with; the run keeps the one that it has.
#include <gtest/gtest.h>

#include "core/run/succession.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem {
namespace {

TEST(SuccessorPlan, IsForTheMixThatItBeginsWith) {
  Scenario s = testing::gpt_scenario("balanced", std::int64_t{64} << 20);
  s.workload.mix.points = {{0, {{"image", 0.1}}}, {30, {{"image", 0.9}}}, {50, {{"image", 0.3}}}};
  const Successor next = successor_of(s, 0)({"balanced", {}}, s.machine, 34);
  EXPECT_EQ(next.planned->workload.mix.share("image", 0), 0.9);
  EXPECT_EQ(next.planned->workload.mix.share("image", 15), 0.9);
  EXPECT_EQ(next.planned->workload.mix.share("image", 16), 0.3);
  EXPECT_EQ(next.scenario->workload.mix.share("image", 0), 0.1);
}

}  // namespace
}  // namespace tandem
