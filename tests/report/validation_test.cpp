// Errors over several scenarios: by hand, on results of round numbers.
#include "report/validation.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

namespace tandem {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::ordered_json;

Json result(std::vector<double> steps, double compute_s, double h2d_s, double device_bytes) {
  return {{"step_time_s", {{"all", steps}, {"median", 99.0}}},
          {"peak_bytes", {{"device0", device_bytes}, {"host", 0}}},
          {"busy_share", {{"device0/compute", compute_s / 2}}},
          {"compute_s", compute_s},
          {"exposed_s", {{"h2d", h2d_s}}}};
}

// A scenario whose steps all take the same time.
ValidatedScenario row(const std::string& name, const std::string& group, double predicted_s, double measured_s) {
  ValidatedScenario row;
  row.name = name;
  row.group = group;
  row.predicted_s = predicted_s;
  row.measured_s = measured_s;
  return row;
}

TEST(ValidationTest, WarmStepsDoNotCountAndCausesAreSharesOfTheMeasuredStep) {
  // Two warm steps: the first has no time in the list, the second the first one.
  const Json measured = result({50, 2, 1, 3}, 1.5, 0.5, 1000), predicted = result({50, 2.2, 2.2, 2.2}, 1.4, 0.7, 990);
  const ValidatedScenario row = validate_scenario("a", "g", predicted, measured, 2);
  EXPECT_DOUBLE_EQ(row.measured_s, 2);
  EXPECT_DOUBLE_EQ(row.predicted_s, 2.2);
  EXPECT_NEAR(row.step_error(), 0.1, 1e-12);
  EXPECT_NEAR(row.spread, (2.8 - 1.2) / 2, 1e-12);  // quantiles of 1, 2, 3 by linear interpolation
  EXPECT_NEAR(row.device_error, -0.01, 1e-12);
  EXPECT_TRUE(std::isnan(row.host_error));
  EXPECT_NEAR(row.cause_errors.at("compute"), -0.05, 1e-12);
  EXPECT_NEAR(row.idle_error, 0.05, 1e-12);
  EXPECT_NEAR(row.cause_errors.at("h2d"), 0.1, 1e-12);
}

TEST(ValidationTest, ARunWithoutTimedStepsStandsForItself) {
  EXPECT_DOUBLE_EQ(validate_scenario("a", "g", result({}, 1, 0, 1), result({4}, 1, 0, 1), 2).predicted_s, 99);
  EXPECT_DOUBLE_EQ(validate_scenario("a", "g", result({}, 1, 0, 1), result({4}, 1, 0, 1), 2).measured_s, 4);
}

TEST(ValidationTest, SizesOfErrorsIgnoreSignsAndWhatHasNone) {
  const ErrorSizes sizes = sizes_of({-0.3, 0.1, std::numeric_limits<double>::quiet_NaN(), 0.2});
  EXPECT_DOUBLE_EQ(sizes.median, 0.2);
  EXPECT_NEAR(sizes.p90, 0.28, 1e-12);
  EXPECT_DOUBLE_EQ(sizes.worst, 0.3);
  EXPECT_DOUBLE_EQ(sizes.bias, 0.1);
  EXPECT_DOUBLE_EQ(sizes_of({}).worst, 0);
}

TEST(ValidationTest, APolicyIsForeseenWhereItIsMeasuredFastestOrNearIt) {
  ValidationTable table;
  table.rows = {row("a1", "a", 1.0, 1.019), row("a2", "a", 1.1, 1.0),  // within 2% of the fastest
                row("b1", "b", 1.0, 1.03), row("b2", "b", 1.1, 1.0),   // not
                row("c1", "c", 1.0, 5.0)};                             // nothing to compare it with
  const std::vector<Ranking> all = rankings(table);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_TRUE(all[0].right());
  EXPECT_FALSE(all[1].right());
  EXPECT_EQ(all[1].predicted, "b1");
  EXPECT_EQ(all[1].measured, "b2");
  EXPECT_NEAR(all[1].excess, 0.03, 1e-12);
  EXPECT_THAT(validation_summary(table), HasSubstr("in 1 of 2 groups"));
}

TEST(ValidationTest, WhatMissesIsSaidAgainAtTheEnd) {
  ValidationTable table;
  table.rows = {row("near", "a", 1.09, 1), row("far", "b", 1.11, 1), row("deep", "c", 1, 1)};
  table.rows[2].device_error = 0.03;
  table.failures = {{"broken", "", "does not fit"}};
  const std::string text = validation_summary(table);
  EXPECT_THAT(text, HasSubstr("missed: far"));
  EXPECT_THAT(text, HasSubstr("missed: deep"));
  EXPECT_THAT(text, Not(HasSubstr("missed: near")));
  EXPECT_THAT(text, HasSubstr("predicted: ran; measured: does not fit"));
}

TEST(ValidationTest, IntervalsHoldTheMeasuredStepOrNot) {
  Json predicted = result({50, 2.2, 2.2, 2.2}, 1, 0, 1);
  predicted["step_time_s"]["median"] = 2.0;  // of all steps
  predicted["step_time_s"]["interval_90"] = {1.9, 2.1};
  const auto measured = [&](double s) { return validate_scenario("a", "g", predicted, result({s}, 1, 0, 1), 2); };
  ValidationTable table;
  table.rows = {measured(2.1), measured(2.3), measured(2.4)};  // of 2.09 to 2.31
  EXPECT_NEAR(table.rows[0].interval->low, 2.09, 1e-12);
  EXPECT_NEAR(table.rows[0].interval->high, 2.31, 1e-12);
  table.rows.push_back(row("none", "g", 1, 1));  // a profile without uncertainty
  const IntervalFigures figures = interval_figures(table);
  EXPECT_EQ(figures.scenarios, 3U);
  EXPECT_EQ(figures.inside, 2U);
  EXPECT_NEAR(figures.median_width, 0.1, 1e-12);
  EXPECT_THAT(validation_summary(table), HasSubstr("inside the 90% interval: 2 of 3 step times, 66.7% (aim"));
  EXPECT_THAT(validation_line(table.rows[0]), HasSubstr("±5.0% in "));
  EXPECT_THAT(validation_line(table.rows[2]), HasSubstr("±5.0% out"));
  EXPECT_THAT(validation_csv(table), HasSubstr(",true\n"));
  EXPECT_THAT(validation_csv(table), HasSubstr(",,,\n"));
  const Json json = validation_json(table);
  EXPECT_EQ(json["scenarios"][2]["inside"], false);
  EXPECT_FALSE(json["scenarios"][3].contains("interval_90"));
  EXPECT_NEAR(json["interval_90"]["inside"].get<double>(), 2.0 / 3, 1e-12);
  EXPECT_THAT(validation_html(table), HasSubstr("2 of 3"));
}

// Steps of 1 and 3 s by turns, measured for three steps: the same three have a median of 1, others of 3.
TEST(ValidationTest, AnUnsteadyRunIsPredictedByItsOwnStepsAndMayHaveOthers) {
  std::vector<double> by_turns{50};
  for (int i = 0; i < 20; ++i) by_turns.push_back(i % 2 == 0 ? 1 : 3);
  Json predicted = result(by_turns, 1, 0, 1);
  predicted["step_time_s"]["median"] = 2.0;
  predicted["step_time_s"]["interval_90"] = {1.9, 2.1};
  const ValidatedScenario row = validate_scenario("a", "g", predicted, result({50, 1, 3, 1}, 1, 0, 1), 2);
  EXPECT_DOUBLE_EQ(row.predicted_s, 1);
  EXPECT_NEAR(row.interval->low, 0.95, 1e-12);
  EXPECT_NEAR(row.interval->high, 1 + std::hypot(2, 0.05), 1e-12);
}

TEST(ValidationTest, WithoutIntervalsNothingIsSaidOfThem) {
  ValidationTable table;
  table.rows = {row("a", "g", 1, 1)};
  EXPECT_THAT(validation_summary(table), Not(HasSubstr("interval")));
}

TEST(ValidationTest, TableAndPageHoldEveryScenarioAndNoMarkupOfTheirs) {
  ValidationTable table;
  table.rows = {row("plain", "a", 1, 2), row("<b>\"odd\"", "a", 3, 2)};
  const std::string csv = validation_csv(table), html = validation_html(table);
  EXPECT_THAT(csv, HasSubstr("\"plain\",1,2,0,-0.5,"));
  EXPECT_THAT(csv, HasSubstr("\"<b>\"\"odd\"\"\""));
  EXPECT_THAT(html, HasSubstr("<title>plain\npredicted 1.00 s, measured 2.00 s: -50.0%</title>"));
  EXPECT_THAT(html, HasSubstr("&lt;b&gt;"));
  EXPECT_THAT(html, Not(HasSubstr("<b>")));
  EXPECT_THAT(html, Not(HasSubstr("{{")));
  EXPECT_EQ(validation_json(table)["scenarios"].size(), 2U);
}

}  // namespace
}  // namespace tandem
