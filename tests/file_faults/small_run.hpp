// A run in small, without LibTorch: states of a network that a formula moves on, saved after every step as a real run
// saves them, a table's row a step and an output at the end. As fast as its files, so that every call can fail in turn.
#pragma once

#include <string>
#include <vector>

#include "core/scenario/scenario.hpp"

namespace tandem::testing {

class SmallRun {
 public:
  static constexpr int kSteps = 4, kKept = 2;

  // Everything that it reads and writes lies in `folder`.
  explicit SmallRun(const std::string& folder);

  std::string directory() const { return folder_ + "/runs/saved"; }  // two folders, which the run makes
  std::string table() const { return folder_ + "/tables/rows.csv"; }
  std::string output() const { return folder_ + "/result.txt"; }

  // Trains up to `steps`, as a program: returns its exit code. Goes on from the latest checkpoint if there is one; from
  // `resume` if that is given.
  int operator()(int steps = kSteps, const std::string& resume = "") const;

 private:
  int train(int steps, const std::string& resume) const;

  std::string folder_;
  Scenario scenario_;
};

// The names of complete checkpoints whose manifests and files are whole, and of those that are not, as "step-00000002".
struct Found {
  std::vector<std::string> whole, damaged;
};
Found checkpoints_in(const std::string& directory);

}  // namespace tandem::testing
