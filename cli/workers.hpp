// Many runs of one of Tandem's programs, as many at a time as there are cores. Must not know what they do.
#pragma once

#include <string>
#include <vector>

#include "cli/cli.hpp"
#include "cli/siblings.hpp"

namespace tandem {

struct WorkerJob {
  std::vector<std::string> arguments;
  std::string output;  // a file for its standard output
};

// Runs tandem-<part> for each job; the results are in the jobs' order. Standard error is returned and not shown. The
// first that throws, as run_child() does, ends all: those that run are waited for.
std::vector<ChildResult> run_children(const std::string& part, const std::vector<WorkerJob>& jobs, Progress& progress);

}  // namespace tandem
