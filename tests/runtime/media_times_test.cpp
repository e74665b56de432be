// Rates of input stages: lines through times that are known, and every stage of this build.
#include "calibration/media_times.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/input_stages.hpp"
#include "runtime/media/decode.hpp"

namespace tandem {
namespace {

StageTime time_of(const std::string& stage, double units, double ns) { return {stage, units, summarize({ns})}; }

TEST(MediaTimes, ALineIsFoundThroughItsPoints) {
  std::vector<StageTime> times;
  for (const double units : {1e3, 1e4, 1e6}) times.push_back(time_of("resize", units, 5000 + 2 * units));
  const StageRate rate = fit_stages(times).at("resize");
  EXPECT_NEAR(rate.item_ns, 5000, 1e-3);
  EXPECT_NEAR(rate.unit_ns, 2, 1e-9);
}

TEST(MediaTimes, NoPartIsNegative) {
  // Of a line through both points the item would take -1000 ns.
  const StageRate steep = fit_stages({time_of("read", 1e3, 1000), time_of("read", 1e4, 19000)}).at("read");
  EXPECT_EQ(steep.item_ns, 0);
  EXPECT_GT(steep.unit_ns, 1);
  EXPECT_LT(steep.unit_ns, 1.9);
  const StageRate falling = fit_stages({time_of("read", 1e3, 1000), time_of("read", 1e4, 900)}).at("read");
  EXPECT_EQ(falling.unit_ns, 0);
  EXPECT_NEAR(falling.item_ns, 947, 5);  // the mean under weights 1 / t^2
}

TEST(MediaTimes, EveryStageIsTimed) {
  const auto rates = fit_stages(time_media(::testing::TempDir(), /*quick=*/true));
  for (const std::string_view stage : kInputStages) {
    if ((stage == "video_decode" && !decodes_video()) || stage.starts_with(kOnDevice)) continue;
    ASSERT_TRUE(rates.contains(std::string(stage))) << stage;
    const StageRate rate = rates.at(std::string(stage));
    EXPECT_GT(rate.item_ns + rate.unit_ns, 0) << stage;
    EXPECT_LT(rate.unit_ns, 100'000) << stage;  // no unit takes as long on any machine
  }
}

}  // namespace
}  // namespace tandem
