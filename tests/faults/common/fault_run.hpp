// Runs a program's code in a process of its own, forked from this one, where one call on a folder's files fails. The
// library that makes it fail is linked into the test, before libc. Nothing of LibTorch may have run before a fork.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tandem::testing {

struct Fault {
  std::string kind;  // as in tests/faults/library/faults.hpp; "": none
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

struct Ended {
  int code = 0;                   // the exit code, or minus the signal
  std::string output;             // of both streams
  std::vector<TracedCall> calls;  // in the order in which they began
  // The call that failed; null where the run came to fewer calls than that.
  const TracedCall* faulted() const;
};

Ended run_with(const std::string& folder, const Fault& fault, const std::function<int()>& program);

// All that can happen to the calls of a run without a fault: each kind where it makes sense. Deaths around calls that
// leave nothing on the disk are left out.
std::vector<Fault> faults_of(const std::vector<TracedCall>& calls);

// Every so many of them, about `few` in all, spread over calls and kinds: by a fixed seed, or all where
// TANDEM_EVERY_FAULT is set.
std::vector<Fault> chosen(const std::vector<Fault>& all, std::size_t few);

// A new folder in memory where there is one, as tens of thousands of syncs take minutes on a disk.
std::string new_folder();
std::string bytes_of(const std::string& path);  // "" where there is none

}  // namespace tandem::testing
