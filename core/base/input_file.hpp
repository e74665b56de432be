// What stands where an input file should be. Opening a named pipe waits for a writer, a device may never end: so a path
// is looked at before it is opened. Must not know formats.
#pragma once

#include <string>

namespace tandem {

// "a folder", "a named pipe", "a pipe", "a socket" or "a device"; "" for a file, and for what is missing or may not be
// looked at, of which opening says why. A pipe without a name is what a shell hands over (tandem simulate <(command)).
std::string other_than_a_file(const std::string& path);

// Why `path` is nothing to read from its begin to its end: "is a folder". "" for a file, a pipe without a name (its
// writer is there), and what opening says more of.
std::string why_not_read(const std::string& path);

}  // namespace tandem
