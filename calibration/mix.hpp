// Lanes of a workbench kept busy beside each other, as runs keep them. Must not know what is made of the times.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "calibration/lane_times.hpp"
#include "calibration/workbench.hpp"

namespace tandem {

// Keeps lanes busy: each lane has work of about the same length, in commands of one lane's kind, as runs have them, of
// a bucket's size. They go round so much memory that no cache holds it: most of what a run copies is optimizer states,
// which nothing reads for a step.
class Mix {
 public:
  Mix(Workbench& bench, const CopyDesign& copies);

  // Adds about `ns` of work to the lane, by what one round of it takes (measured at the first call).
  void add(Engine lane, double ns);
  // Runs what was added; then the device rests, if kernels ran (CopyDesign::rest).
  Workbench::Turn execute();

 private:
  void add_round(Engine lane);
  ByteRange next(Engine lane);  // the next bytes of the lane's range, a bucket's or all

  Workbench& bench_;
  CopyDesign copies_;
  OpId optimizer_;
  std::map<Engine, ByteRange> ranges_;  // of copies, of the arenas; of the optimizer's first write
  std::map<Engine, double> round_ns_;
  std::map<Engine, std::int64_t> at_;
};

// From when all lanes of a turn were busy to when the first had nothing left to do.
struct Busy {
  TimeNs from, to;
  bool holds(const Event& event) const { return event.started >= from && event.finished <= to; }
};
Busy all_busy(const Workbench::Turn& turn, const std::vector<Command>& commands);

// Time of each of the lane's commands by its kind, a copy or an op's work, while all lanes were busy.
std::map<std::string, std::vector<double>> times_beside(Workbench& bench, const Workbench::Turn& turn, Engine lane,
                                                        const std::vector<Command>& commands);

}  // namespace tandem
