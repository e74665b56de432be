// Where the difference of two hand-made runs comes from. The drawing of TwoSteps is in fake_run.hpp.
#include "analysis/step_difference.hpp"

#include <gmock/gmock.h>

#include "tests/common/fake_run.hpp"

namespace tandem {
namespace {

using testing::FakeRun;
using testing::TwoSteps;

constexpr double kNs = 1e-9;

double of(const StepDifference& difference, Cause cause) {
  return difference.by_cause_s[static_cast<std::size_t>(cause)] / kNs;
}

// Later by `by` ns: an event that started or finished after `from`.
void delay(FakeRun& run, std::int64_t from, std::int64_t by) {
  for (Event& event : run.events) {
    if (event.started.ns >= from) event.started.ns += by;
    if (event.finished.ns > from) event.finished.ns += by;
  }
}

StepDifference difference_of(const FakeRun& predicted_run, const FakeRun& measured_run) {
  FakeRun predicted = predicted_run, measured = measured_run;
  const RunRecord of_predicted = predicted.record(), of_measured = measured.record("measured");
  const Analysis above = analyse(of_predicted), below = analyse(of_measured);
  return step_difference(above, below);
}

TEST(StepDifference, OfARunFromItselfIsNothing) {
  const StepDifference difference = difference_of(TwoSteps(), TwoSteps());
  EXPECT_EQ(difference.step_s, 0);
  EXPECT_NEAR(difference.other_order_s, 0, 1e-15);
  for (const double s : difference.by_cause_s) EXPECT_NEAR(s, 0, 1e-15);
  EXPECT_EQ(difference.unmatched_s, 0);
}

// The update takes from 80 to 100, and from 80 to 107 in the measured run.
TEST(StepDifference, OfALongerCommandIsThatCommands) {
  TwoSteps measured;
  delay(measured, 90, 7);
  const StepDifference difference = difference_of(TwoSteps(), measured);
  EXPECT_NEAR(difference.step_s / kNs, -7, 1e-6);
  EXPECT_NEAR(of(difference, Cause::CpuOptimizer), -7, 1e-6);
  EXPECT_NEAR(difference.other_order_s / kNs, 0, 1e-6);
  ASSERT_FALSE(difference.largest.empty());
  EXPECT_EQ(difference.largest.front().name, "update");
  EXPECT_NEAR(difference.largest.front().predicted_s / kNs, 20, 1e-6);
  EXPECT_NEAR(difference.largest.front().measured_s / kNs, 27, 1e-6);
}

// The copy of the second step starts at 112 in the prediction, 12 after the update's end.
TEST(StepDifference, OfALaterStartIsDispatch) {
  TwoSteps predicted;
  delay(predicted, 100, 12);
  const StepDifference difference = difference_of(predicted, TwoSteps());
  EXPECT_NEAR(difference.step_s / kNs, 12, 1e-6);
  EXPECT_NEAR(of(difference, Cause::Dispatch), 12, 1e-6);
  EXPECT_NEAR(difference.other_order_s / kNs, 0, 1e-6);
}

// In the prediction the second step's copy does not wait for the update, and comes 20 earlier: nothing that the
// measured step went by is shorter for it.
TEST(StepDifference, OfAnotherChainIsItsOrder) {
  TwoSteps predicted;
  for (MemoryLog::Entry& entry : predicted.entries)
    for (Command& command : entry.commands)
      if (command.kind == CommandKind::Copy && command.lane.kind() == Engine::H2D) command.wait_for.clear();
  delay(predicted, 100, -20);
  const StepDifference difference = difference_of(predicted, TwoSteps());
  EXPECT_NEAR(difference.step_s / kNs, -20, 1e-6);
  EXPECT_NEAR(difference.other_order_s / kNs, -20, 1e-6);
}

// A run of other bytes has no command in common with this one but those without parts.
TEST(StepDifference, WhatOnlyOneRunDoesIsNotMatched) {
  const StepDifference difference = difference_of(TwoSteps(2000), TwoSteps());
  EXPECT_NEAR(difference.unmatched_s / kNs, 10 + 30, 1e-6) << "the copies down and up, of 1,000 bytes";
  EXPECT_NEAR(difference.other_order_s / kNs, 0, 1e-6);
}

}  // namespace
}  // namespace tandem
