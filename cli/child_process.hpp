// A program that this one starts, and that never outlives it. Must not know what the program does.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace tandem {

struct ChildOutput {
  int errors = -1;     // a descriptor for its standard error; -1: that of this process
  std::string output;  // a file for its standard output; "": that of this process
};

// Starts `program`: it is killed when the thread that called this ends, however that happens. Interrupts wait until it
// has its handler. Throws DeviceError.
pid_t start_child(const std::string& program, std::vector<std::string> arguments, const ChildOutput& to = {});

struct ChildEnd {
  int status = 0;      // as waitpid() gives it
  std::string errors;  // what came through the pipe
};
// Waits until it has ended, reading `pipe` (-1: none) meanwhile. A SIGINT or SIGTERM is passed on to it; if it has then
// not ended for nine seconds, or another comes, it is killed. Throws Interrupted once it is gone.
ChildEnd wait_for_child(pid_t child, int pipe = -1);

}  // namespace tandem
