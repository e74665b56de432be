// The other programs of Tandem, beside this one: found, run, waited for. Must not know what they do.
#pragma once

#include <string>
#include <vector>

#include "report/temporary_file.hpp"

namespace tandem {

// Path of tandem-<part> beside the running program. Throws ConfigError if it is not there: not every build has all
// parts.
std::string sibling(const std::string& part);

// Replaces this process by tandem-<part> with these arguments. Throws as sibling() does, and DeviceError.
[[noreturn]] void become(const std::string& part, const std::vector<std::string>& arguments);

// The same by any program's path, which is the first word.
[[noreturn]] void become_program(std::vector<std::string> words);

struct ChildResult {
  int exit_code = 0;   // 128 + the signal's number, if one ended it
  std::string errors;  // what it wrote to standard error, if that was asked for
  // Their first line, without the program's name and without what could drive a terminal; the signal that ended it if
  // there is none.
  std::string reason() const;
};
// Runs tandem-<part> to its end. `keep_errors`: standard error is returned and not shown. `output`: a file that
// standard output goes to; "": that of this process. It ends with this process. Throws Interrupted, as
// wait_for_child() does.
ChildResult run_child(const std::string& part, const std::vector<std::string>& arguments, bool keep_errors = false,
                      const std::string& output = "");

}  // namespace tandem
