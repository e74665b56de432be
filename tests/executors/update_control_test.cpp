// What a step's gradients decide: scale, skip, Adam's corrections.
#include "runtime/optimizer/update_control.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/optimizer/update.hpp"

namespace tandem {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

UpdateRules rules(std::int64_t interval) {
  return {.clip_norm = 0,
          .learning_rate = 0.5,
          .beta1 = 0.5,
          .beta2 = 0.75,
          .interval = interval,
          .v_root_correction = 3,
          .negative_step_size = -7};
}

TEST(UpdateControl, ClipsByTheNorm) {
  UpdateControl control{};
  UpdateRules clipped = rules(1);
  clipped.clip_norm = 1;
  EXPECT_EQ(control_update(clipped, 16, nullptr, control), 4);
  EXPECT_EQ(control.gradient_scale, 1 / (4 + 1e-6));
  EXPECT_EQ(control.v_root_correction, 3);
  EXPECT_EQ(control.negative_step_size, -7);
  control_update(clipped, 0.25, nullptr, control);
  EXPECT_EQ(control.gradient_scale, 1);
}

TEST(UpdateControl, SkipsWhatIsNotFinite) {
  for (const double sum : {kInfinity, kNaN}) {
    UpdateControl control{};
    LossScale scale = initial_loss_scale(8);
    EXPECT_FALSE(std::isfinite(control_update(rules(1), sum, &scale, control)));
    EXPECT_EQ(control.gradient_scale, 0);
    EXPECT_EQ(scale.scale, 4);
    EXPECT_EQ(scale.beta1_power, 1) << "a skipped step is none";
    EXPECT_EQ(scale.beta2_power, 1);
  }
}

TEST(UpdateControl, TheNormIsThatOfUnscaledGradients) {
  UpdateControl control{};
  UpdateRules clipped = rules(10);
  clipped.clip_norm = 0.5;
  LossScale scale = initial_loss_scale(1024);
  EXPECT_EQ(control_update(clipped, 4.0 * 1024 * 1024, &scale, control), 2);
  EXPECT_EQ(control.gradient_scale, 0.5 / (2 + 1e-6) / 1024);
}

TEST(UpdateControl, ScaleDoublesAfterGoodStepsAndHalvesToOne) {
  UpdateControl control{};
  LossScale scale = initial_loss_scale(2);
  const float expected[] = {2, 2, 4, 4, 4, 8};
  for (const float after : expected) {
    control_update(rules(3), 1, &scale, control);
    EXPECT_EQ(scale.scale, after);
  }
  control_update(rules(3), 1, &scale, control);
  control_update(rules(3), 1, &scale, control);
  control_update(rules(3), kInfinity, &scale, control);  // good steps are counted anew
  control_update(rules(3), 1, &scale, control);
  EXPECT_EQ(scale.scale, 4);
  for (int i = 0; i < 9; ++i) control_update(rules(3), kInfinity, &scale, control);
  EXPECT_EQ(scale.scale, 1);
}

// beta1 = 1/2 and beta2 = 3/4: the powers are exact.
TEST(UpdateControl, CorrectionsCountTheStepsThatWereTaken) {
  UpdateControl control{};
  LossScale scale = initial_loss_scale(1);
  const UpdateRules r = rules(1000);
  std::int64_t taken = 0;
  for (const double sum : {1.0, kInfinity, 1.0, 1.0, kNaN, 1.0}) {
    control_update(r, sum, &scale, control);
    if (!std::isfinite(sum)) continue;
    const UpdateStep step = update_step({r.learning_rate, r.beta1, r.beta2}, ++taken);
    EXPECT_EQ(control.v_root_correction, step.v_root_correction) << taken;
    EXPECT_EQ(control.negative_step_size, step.negative_step_size) << taken;
  }
}

}  // namespace
}  // namespace tandem
