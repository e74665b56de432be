// Which of many answers are worth a choice, where two figures count. Must not know what the figures are of.
#pragma once

#include <cstddef>
#include <vector>

namespace tandem {

struct TwoFigures {
  double first = 0, second = 0;
};

// Numbers of the points of which no other is better in one figure and as good in the other, the best by the first
// figure before. Of equal points only the first.
std::vector<std::size_t> pareto_front(const std::vector<TwoFigures>& points, bool more_of_first_is_better,
                                      bool more_of_second_is_better);

}  // namespace tandem
