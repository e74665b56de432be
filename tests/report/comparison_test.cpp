// A prediction beside a measurement: one unit a row.
#include "report/comparison.hpp"

#include <gmock/gmock.h>

namespace tandem {
namespace {

std::vector<ComparedFigure> compared(double predicted_s, double measured_s) {
  const auto of = [](double s) { return nlohmann::json{{"step_time_s", {{"median", s}}}}; };
  return compare_results(of(predicted_s), of(measured_s));
}

TEST(Comparison, ARowHasOneUnit) {
  const auto same = compared(0.5, 0.25);
  ASSERT_EQ(same.size(), 1u);
  EXPECT_EQ(same[0].predicted, "500 ms");
  EXPECT_EQ(same[0].measured, "250 ms");
  const auto other = compared(1.5, 0.75);
  EXPECT_EQ(other[0].predicted, "1.50 s");
  EXPECT_EQ(other[0].measured, "0.750 s");
  EXPECT_DOUBLE_EQ(other[0].error, 1.0);
  EXPECT_EQ(compared(0.02, 3)[0].predicted, "0.020 s");
  EXPECT_EQ(compared(1e-6, 3)[0].predicted, "~0 s");
}

}  // namespace
}  // namespace tandem
