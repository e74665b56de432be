// Tiny live runs drawn by a seed: network, policy, limits, device. And what a faulty run of one may come to.
#pragma once

#include <random>

#include "tests/faults/live_run.hpp"

namespace tandem::testing {

struct RandomLive {
  Scenario scenario;
  LiveRun run;
  Plan plan;
};

// std::mt19937_64 is the same everywhere; the standard distributions are not.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n)); }
  template <class T>
  const T& of(const std::vector<T>& all) {
    return all[static_cast<std::size_t>(below(static_cast<std::int64_t>(all.size())))];
  }

 private:
  std::mt19937_64 random_;
};

RandomLive random_live(std::uint64_t seed);

}  // namespace tandem::testing
