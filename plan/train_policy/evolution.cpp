#include "plan/train_policy/evolution.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "core/base/check.hpp"
#include "core/samples/sample_order.hpp"

namespace tandem {
namespace {

// Box and Muller 1958.
double normal(std::uint64_t seed, std::int64_t place) {
  const double u = std::max(draw_of(seed, place, 0), 1e-12), v = draw_of(seed, place, 1);
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

}  // namespace

std::vector<float> evolve(const EvolutionOptions& o, const Scores& scores, const Told& told) {
  CHECK(o.elite >= 1 && o.elite <= o.population, o.elite, o.population);
  std::vector<double> mean(o.numbers, 0), spread(o.numbers, o.spread);
  std::vector<float> best;
  double least = std::numeric_limits<double>::infinity();
  std::int64_t draw = 0;
  for (int generation = 1; generation <= o.generations; ++generation) {
    std::vector<std::vector<float>> people(o.population, std::vector<float>(o.numbers));
    for (auto& person : people)
      for (std::size_t i = 0; i < o.numbers; ++i)
        person[i] = static_cast<float>(mean[i] + spread[i] * normal(o.seed, draw++));
    if (!best.empty()) people.front() = best;
    const std::vector<double> score = scores(people);
    std::vector<std::size_t> order(o.population);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return score[a] < score[b]; });
    if (score[order.front()] < least) best = people[order.front()], least = score[order.front()];
    for (std::size_t i = 0; i < o.numbers; ++i) {
      double sum = 0, squares = 0;
      for (std::size_t e = 0; e < o.elite; ++e) {
        const double x = people[order[e]][i];
        sum += x, squares += x * x;
      }
      const double n = static_cast<double>(o.elite);
      mean[i] = sum / n;
      // Never quite certain: what is chosen for the wrong reason can still change.
      constexpr double kLeastSpread = 0.05;
      spread[i] = std::max(std::sqrt(std::max(0.0, squares / n - mean[i] * mean[i])), kLeastSpread);
    }
    told(generation, least);
  }
  return best;
}

}  // namespace tandem
