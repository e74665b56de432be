// How reports tell the interval of a predicted step.
#include <gmock/gmock.h>

#include "analysis/analysis.hpp"
#include "core/base/units.hpp"
#include "report/comparison.hpp"
#include "report/json_result.hpp"
#include "report/summary.hpp"
#include "tests/common/fake_run.hpp"

namespace tandem {
namespace {

using testing::all_causes;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::TwoSteps;

TEST(IntervalWords, SummaryAndJsonShowIt) {
  TwoSteps run;
  const RunRecord record = run.record();
  EXPECT_THAT(summary(analyse(record)), Not(HasSubstr("interval")));
  EXPECT_FALSE(to_json(analyse(record))["step_time_s"].contains("interval_90"));
  run.scenario.machine.uncertainty = all_causes(0.1);
  const Analysis analysis = analyse(record);
  EXPECT_THAT(summary(analysis), HasSubstr("step time    90.0 ns, 90% interval 81.1 to 98.9 ns"));
  EXPECT_EQ(to_json(analysis)["step_time_s"]["interval_90"][0], analysis.step_interval->low);
}

TEST(IntervalWords, AComparisonTellsWhetherTheMeasuredStepIsInside) {
  nlohmann::json predicted{{"step_time_s", {{"median", 1.0}, {"interval_90", {0.9, 1.1}}}}};
  const auto where = [&](double measured_s) {
    const nlohmann::json measured{{"step_time_s", {{"median", measured_s}}}};
    return comparison_text(compare_results(predicted, measured));
  };
  EXPECT_THAT(where(1.05), HasSubstr("900 ms to 1.10 s       inside"));
  EXPECT_THAT(where(0.85), HasSubstr(" below "));
  EXPECT_THAT(where(1.15), HasSubstr(" above "));
  predicted["step_time_s"].erase("interval_90");
  EXPECT_THAT(where(1.05), Not(HasSubstr("interval")));
}

TEST(IntervalWords, ARangeNamesItsUnitOnce) {
  EXPECT_EQ(format_range(1.194, 1.27), "1.19 to 1.27 s");
  EXPECT_EQ(format_range(0.98, 1.27), "980 ms to 1.27 s");
}

}  // namespace
}  // namespace tandem
