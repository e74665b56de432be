// Adam on the CPU by how many parameters a command updates, timed in turns between other measurements: what a host's
// memory gives changes from second to second with what else runs on the machine, and runs meet all of that.
// Must not know how the times are fitted.
#pragma once

#include <cstdint>
#include <vector>

#include "calibration/op_times.hpp"
#include "calibration/workbench.hpp"

namespace tandem {

class UpdateTurns {
 public:
  // Trains the network for a step, so that there are gradients, and keeps it: parts of its largest update are timed. Of
  // its states caches should hold next to nothing, as of a run's. Throws as Workbench does.
  UpdateTurns(const Trial& network, const BenchDevice& device);

  // Goes on around the states in parts of three sizes, one of them as small as a command's cost.
  void take();

  // An entry for each turn and size; the turn stands for a network, as what is left out together.
  const std::vector<OpTime>& times() const { return times_; }

 private:
  struct Size {
    std::int64_t bytes;  // of the update's first write
    int commands;        // a turn
    std::int64_t at = 0;
  };
  void time(Size& size);
  ByteRange next(Size& size) const;

  Workbench bench_;
  OpId update_;
  std::int64_t bytes_ = 0;  // of its first write
  std::vector<Size> sizes_;
  std::vector<OpTime> times_;
  int turns_ = 0;
};

}  // namespace tandem
