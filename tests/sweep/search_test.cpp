// The search for the largest number that fits, against every number of a range.
#include "sweep/search.hpp"

#include <gtest/gtest.h>

#include "cli/cli.hpp"

namespace tandem {
namespace {

SimulatedRow row_with(int exit_code) {
  SimulatedRow row;
  row.exit_code = exit_code;
  row.does_not_fit = exit_code == kDoesNotFit;
  row.failed = exit_code > kDoesNotFit;
  row.why_not = exit_code == kDone ? "" : "because";
  return row;
}

std::int64_t asked_for(const PointSearch& search) {
  const std::string setting = search.question().back();
  EXPECT_EQ(setting.substr(0, 2), "n=");
  return std::stoll(setting.substr(2));
}

TEST(PointSearch, FindsTheLargestThatFits) {
  for (std::int64_t high = 0; high <= 40; ++high)
    for (std::int64_t fits = 0; fits <= high; ++fits) {
      PointSearch search({"a=1"}, {"n", 0, high});
      int questions = 0;
      for (; !search.is_over(); ++questions) search.answer(row_with(asked_for(search) <= fits ? kDone : kDoesNotFit));
      EXPECT_EQ(search.take().largest, fits) << "of 0.." << high;
      EXPECT_LE(questions, 14);  // doubling up to 40, then halving
    }
}

TEST(PointSearch, WithoutARangeThereIsOneQuestion) {
  PointSearch search({"a=1", "b=2"}, {});
  EXPECT_EQ(search.question(), (std::vector<std::string>{"a=1", "b=2"}));
  search.answer(row_with(kDoesNotFit));
  ASSERT_TRUE(search.is_over());
  EXPECT_TRUE(search.take().does_not_fit);
}

TEST(PointSearch, ARangeOfWhichNothingFitsSaysWhy) {
  PointSearch search({}, {"n", 3, 9});
  EXPECT_EQ(asked_for(search), 3);
  search.answer(row_with(kDoesNotFit));
  ASSERT_TRUE(search.is_over());
  const SimulatedRow row = search.take();
  EXPECT_TRUE(row.does_not_fit);
  EXPECT_FALSE(row.largest.has_value());
}

TEST(PointSearch, AFailureAndARefusalEndIt) {
  for (const int code : {kDeviceFailure, kBadInput}) {
    PointSearch search({}, {"n", 3, 9});
    search.answer(row_with(kDone));
    search.answer(row_with(code));
    ASSERT_TRUE(search.is_over());
    const SimulatedRow row = search.take();
    EXPECT_EQ(row.exit_code, code);
    EXPECT_EQ(row.largest.has_value(), code == kBadInput);  // which number it was
  }
}

}  // namespace
}  // namespace tandem
