#include "analysis/pareto_front.hpp"

#include <algorithm>
#include <numeric>

namespace tandem {

std::vector<std::size_t> pareto_front(const std::vector<TwoFigures>& points, bool more_of_first_is_better,
                                      bool more_of_second_is_better) {
  const auto better = [](double a, double b, bool more) { return more ? a > b : a < b; };
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) {
    const TwoFigures &a = points[x], &b = points[y];
    return a.first != b.first ? better(a.first, b.first, more_of_first_is_better)
                              : better(a.second, b.second, more_of_second_is_better);
  });
  std::vector<std::size_t> front;
  for (const std::size_t i : order)
    if (front.empty() || better(points[i].second, points[front.back()].second, more_of_second_is_better))
      front.push_back(i);
  return front;
}

}  // namespace tandem
