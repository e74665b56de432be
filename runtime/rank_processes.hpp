// The other ranks of a run: copies of this program, one process each, that meet at a file. Must not know what they do.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <functional>
#include <string>
#include <vector>

#include "core/base/ids.hpp"
#include "report/temporary_file.hpp"

namespace tandem {

class RankProcesses {
 public:
  // They end with the calling thread. Starts all ranks but `own` of `program` (this one where it is "") with
  // `arguments` and "--rank=R --meeting-file=FILE" at their end. Throws DeviceError.
  RankProcesses(Rank ranks, const std::vector<std::string>& arguments, const std::string& program = "", Rank own = 0);
  // Ends what still runs, and removes the meeting file.
  ~RankProcesses();
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  const std::string& meeting_file() const { return meeting_file_; }
  // Throws DeviceError naming a rank that has ended already.
  void require_alive();
  // Of those that a signal has ended or stopped: "rank 1 was ended by signal 9"; "" where there is none. From any
  // thread, but not beside finish() or the end.
  std::string struck() const;
  // These may be ended by a signal, and the others go on.
  void spare(const std::vector<Rank>& ranks) { spared_ = ranks; }
  // Of those that have ended, unless all was well or they are spared: "rank 1 was ended by signal 9". As of struck().
  std::string lost() const;
  // Waits for all. Throws DeviceError naming a rank that did not end with 0. Returns which spared ones did not.
  std::string finish();

 private:
  bool is_spared(Rank rank) const;
  std::string told(int changes, const std::function<std::string(Rank, const siginfo_t&)>& what) const;
  RankProcesses();  // delegated to, so that a constructor that throws still ends what it started

  TemporaryFolder folder_;
  std::string meeting_file_;
  struct Process {
    Rank rank = 0;
    pid_t id = 0;  // 0 once waited for
  };
  std::vector<Process> processes_;
  std::vector<Rank> spared_;
};

// "; rank 1 was ended by signal 9", of the others of a run that has failed; "" where all are well, or it is null. Waits
// a moment, as a connection is closed before its process has ended.
std::string struck_by_now(const RankProcesses* others);

}  // namespace tandem
