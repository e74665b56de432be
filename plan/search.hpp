// Finds the fastest candidate of a space with few simulations: what its lower bound, its memory or a neighbour's result
// rules out is not simulated. Part by part of the space, as devices share the training in one way after another. The
// same answer whatever the number of cores. Must not know what a candidate means, nor how it is tried.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plan/candidates.hpp"
#include "plan/space.hpp"

namespace tandem {

struct Oracle {
  std::function<std::vector<CandidateBound>(const std::vector<Settings>&)> bounds;
  std::function<std::vector<CandidateRun>(const std::vector<Settings>&, double best_s)> runs;  // as of Candidates
};

// How much may be tried.
struct Effort {
  // In simulated commands, and as many for each simulation as take the time that it takes to begin: no clock changes
  // it.
  std::int64_t work = 0;
  static constexpr std::int64_t kWorkOfEach = 5000;
  // Instead of that: how much of a time is over, 0 to 1. Null: work counts.
  std::function<double()> time_spent = nullptr;
  bool exhaustive = false;  // all is tried
};

struct Tried {
  Point point;
  CandidateRun run;
  int others = 0;  // choices that compute something else
  bool ran() const { return run.kind == CandidateRun::Kind::Ran; }
};

// What became of the candidates; `simulated` and what was ruled out add up to `all`.
struct Counts {
  std::size_t all = 0, simulated = 0;
  std::size_t not_allowed = 0;  // by the model or the optimizer
  std::size_t too_large = 0;    // what lives from step to step exceeds all memory, or less did not fit
  std::size_t bounded = 0;      // their lower bounds are slower
  std::size_t estimated = 0;    // so are they by what others of their policies took
  std::size_t left = 0;         // might have been faster; the search was cut
};

struct Found {
  std::vector<Tried> tried;           // in the order in which they were
  std::vector<std::string> refusals;  // reasons why choices are not allowed whatever the policy
  Counts counts;
  std::int64_t least_bytes = 0, room_bytes = 0;  // of the bound that takes least memory
  bool last_resort = false;                      // nothing fitted without
  std::int64_t commands = 0;

  // Indices into `tried`, the fastest first.
  std::vector<std::size_t> ranked() const;
};

Found search(const Space& space, double default_samples, const Oracle& oracle, const Effort& effort);

// Of a ranking, the one to take: what computes something else has to be faster by more than a percent.
std::size_t pick(const Found& found);

}  // namespace tandem
