// Runs a program's code in a process of its own, forked from this one, where one call on a folder's files fails. The
// library that makes it fail is linked into the test, before libc. Nothing of LibTorch may have run before a fork.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tandem::testing {

struct Fault {
  std::string kind;  // as in tests/file_faults/library/faults.hpp; "": none
  long at = 0;       // the number of the call, from 1
};
std::string text(const Fault& fault);

// A line of the trace.
struct TracedCall {
  long number = 0;
  std::string name;
  long result = 0;
  bool faulted = false;
  std::string path, second;
};
bool writes_to_disk(const TracedCall& call);

// What such a call has not done, nothing else does: a run may not end well.
bool must_succeed(const TracedCall& call);

struct Ended {
  int code = 0;                   // the exit code, or minus the signal
  std::string output;             // of both streams
  std::vector<TracedCall> calls;  // in the order in which they began
  // The call that failed; null where the run came to fewer calls than that.
  const TracedCall* faulted() const;
};

Ended run_with(const std::string& folder, const Fault& fault, const std::function<int()>& program);

// All of them where TANDEM_EVERY_FAULT is set. Else, by a fixed seed, one of each kind of fault for each call on each
// kind of file (whatever numbers are in its name), and of these at most `most`.
std::vector<Fault> chosen(const std::vector<TracedCall>& calls, std::size_t most);

// A new folder in memory where there is one, as tens of thousands of syncs take minutes on a disk.
std::string new_folder();
std::string bytes_of(const std::string& path);  // "" where there is none

}  // namespace tandem::testing
