// Whether a series of positive numbers has changed its level: Page's cumulative sums (Biometrika 41, 1954) of their
// logarithms, both ways. The level before and its spread are learnt from the first numbers, and better while nothing
// changes.
//
// What adds up is what lies more than one spread from the level; the alarm comes at six spreads in all. Of independent
// normal numbers it comes by chance less than once in 1,000 (tests/adapt). A spread counts as 2% at least, so that a
// change by 10% is seen after two to three numbers, and one by less than 2% never.
#pragma once

#include <cmath>
#include <cstdint>
#include <deque>

namespace tandem {

class ChangeDetector {
 public:
  static constexpr std::int64_t kLearnt = 8;  // numbers that the first level is learnt from

  // True once the level has changed.
  bool take(double number);
  // The level that was learnt: the numbers' geometric mean, but for those that may be of another.
  double level() const { return std::exp(mean_); }
  bool knows() const { return count_ >= kLearnt; }
  // Learns anew.
  void restart() { *this = ChangeDetector(); }

 private:
  double spread() const;
  void learn(double logarithm);

  std::int64_t count_ = 0;
  double mean_ = 0, squares_ = 0;  // of logarithms, Welford's
  double up_ = 0, down_ = 0;       // the sums, in spreads
  std::deque<double> held_;        // logarithms of the last numbers, not learnt yet
};

}  // namespace tandem
