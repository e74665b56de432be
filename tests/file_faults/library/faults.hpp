// A library that stands before libc (linked first, or LD_PRELOAD): it counts the calls that touch files below a folder,
// and lets one of them fail, come short, or be the process's last. Knows nothing of who calls. What it cannot see:
// io_uring's reads and writes (the scratch file's blocks: executors.DiskFault has those), and calls inside libc.
//
// Environment, read when the library is loaded and by tandem_faults_read_environment():
//   TANDEM_FAULT_FOLDER   whose files count; unset: nothing does
//   TANDEM_FAULT_AT       the number of the call, from 1
//   TANDEM_FAULT_KIND     EIO, ENOSPC, EINTR, short (half of the bytes), kill_before, kill_after
//   TANDEM_FAULT_TRACE    a file that each call is written to as it ends: number, name, result, path, a second path
#pragma once

#include <cstddef>
#include <string>

extern "C" void tandem_faults_read_environment();

namespace tandem::faults {

// What is to become of a call.
enum class Fate { Untouched, Counted, Fails, Short, KillBefore, KillAfter };

struct Verdict {
  Fate fate = Fate::Untouched;
  long number = 0;  // of the call, from 1
  int error = 0;    // errno, where it fails
};

// Counts the call if one of the paths lies below the folder. Kills where that comes before the call.
Verdict judge(const char* name, const std::string& path, const std::string& second);
// Writes the trace, and kills where that comes after the call.
void note(const Verdict& verdict, const char* name, long result, const std::string& path, const std::string& second);

// Paths of descriptors that were opened below the folder; "" of others.
std::string path_of(int descriptor);
void remember(int descriptor, const std::string& path);
void forget(int descriptor);
// What is open follows its file to the new name.
void moved(const std::string& from, const std::string& to);
// `path` as an absolute one, from the folder of `descriptor` on where it is relative.
std::string absolute(int descriptor, const char* path);

}  // namespace tandem::faults
