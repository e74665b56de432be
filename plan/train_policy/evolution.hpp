// Numbers that make a score as low as possible, found without gradients: the cross-entropy method. Must not know what
// the numbers mean.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace tandem {

struct EvolutionOptions {
  std::size_t numbers = 1, population = 24, elite = 6;
  int generations = 20;
  double spread = 1;  // at the beginning
  std::uint64_t seed = 0;
};
// Scores of a whole generation; lower is better.
using Scores = std::function<std::vector<double>(const std::vector<std::vector<float>>&)>;
// Told after each generation: its number from 1, the best score so far.
using Told = std::function<void(int, double)>;

// The cross-entropy method (Rubinstein 1999): each generation is drawn around the mean of the best of the last one. The
// best that was seen.
std::vector<float> evolve(const EvolutionOptions& options, const Scores& scores, const Told& told);

}  // namespace tandem
