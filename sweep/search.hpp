// The questions that one combination asks of simulators: one, or those of a search for the largest value that fits.
// Must not know processes or files.
#pragma once

#include <string>
#include <vector>

#include "report/simulated_row.hpp"
#include "sweep/plan.hpp"

namespace tandem {

class PointSearch {
 public:
  // `settings`: --set arguments. `range`, if it has a key: its largest value that fits is looked for. What is larger
  // takes more memory: steps double up from LOW, so that little is simulated that is far too large, then bisection.
  PointSearch(std::vector<std::string> settings, const KeyRange& range);

  // The settings to simulate next.
  std::vector<std::string> question() const;
  // What became of it. `row.largest` is the search's to fill.
  void answer(SimulatedRow row);
  bool is_over() const { return is_over_; }
  // Once it is over: the run with the largest value, or why there is none.
  SimulatedRow take() { return std::move(best_); }

 private:
  void answer_next(SimulatedRow row);

  std::vector<std::string> settings_;
  KeyRange range_;
  bool is_over_ = false, began_ = false;
  std::int64_t number_ = 0, fits_ = 0, above_ = 0, step_ = 1;
  SimulatedRow best_;
};

}  // namespace tandem
