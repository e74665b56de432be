// Pareto fronts, by hand.
#include "analysis/pareto_front.hpp"

#include <gmock/gmock.h>

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Rates, of which more is better, and bytes, of which less is.
TEST(ParetoFront, OnItAreThoseThatNoOtherBeatsInBoth) {
  const std::vector<TwoFigures> points{{200, 20}, {300, 1000}, {100, 30}};
  EXPECT_THAT(pareto_front(points, true, false), ElementsAre(1, 0));
  EXPECT_THAT(pareto_front(points, true, true), ElementsAre(1));
  EXPECT_THAT(pareto_front(points, false, false), ElementsAre(2, 0));
}

TEST(ParetoFront, OfEqualsTheFirstIsEnough) {
  EXPECT_THAT(pareto_front({{300, 5}, {300, 5}, {300, 4}}, true, false), ElementsAre(2));
  EXPECT_THAT(pareto_front({{300, 5}, {300, 5}}, true, false), ElementsAre(0));
  EXPECT_THAT(pareto_front({}, true, false), IsEmpty());
}

}  // namespace
}  // namespace tandem
