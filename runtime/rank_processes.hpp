// The other ranks of a run: copies of this program, one process each, that meet at a file. Must not know what they do.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/base/ids.hpp"

namespace tandem {

class RankProcesses {
 public:
  // Starts ranks 1 to ranks - 1 of `program` (this one where it is "") with `arguments` and
  // "--rank=R --meeting-file=FILE" at their end. Throws DeviceError.
  RankProcesses(Rank ranks, const std::vector<std::string>& arguments, const std::string& program = "");
  // Ends what still runs, and removes the meeting file.
  ~RankProcesses();
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  const std::string& meeting_file() const { return meeting_file_; }
  // Waits for all. Throws DeviceError naming a rank that did not end with 0.
  void finish();

 private:
  RankProcesses() = default;  // delegated to, so that a constructor that throws still ends what it started

  std::string folder_, meeting_file_;
  std::vector<pid_t> processes_;  // 0 once waited for
};

// In a process that RankProcesses started: end when the first rank's process ends, however it ends.
void follow_parent();

}  // namespace tandem
