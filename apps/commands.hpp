// The commands that `tandem` carries out itself. Each returns an exit code; must not know how flags are parsed.
#pragma once

#include <string>
#include <vector>

#include "apps/cli.hpp"

namespace tandem {

// Simulates and trains FILE, and prints predicted beside measured. `train_arguments` go to tandem-train alone.
int compare(const CommonFlags& flags, const std::vector<std::string>& train_arguments);
// compare for many scenarios; prints the error of each and the median. No files: those of scenarios/validation.
int validate(const std::vector<std::string>& files, const CommonFlags& flags,
             const std::vector<std::string>& train_arguments);
// Simulates FILE with every policy and prints them by step time, with what does not fit.
int compare_policies(const CommonFlags& flags);
int check_files(const std::vector<std::string>& files, const std::vector<std::string>& overrides, bool quiet);
// `what`: policies, transforms, workloads, machines or scenarios.
int list(const std::string& what);
int replay_log(const std::string& path, bool quiet);

// What compare and validate share: both runs of one scenario, as files in `folder`. Returns the first exit code that is
// not 0.
struct ComparedRuns {
  int exit_code = kDone;
  std::string predicted_json, measured_json, predicted_log, measured_log;  // paths
};
class TemporaryFolder;
ComparedRuns run_both(const CommonFlags& flags, const std::vector<std::string>& train_arguments, bool with_logs,
                      const TemporaryFolder& folder);

// Flags as arguments for a child: FILE, --set and --seed.
std::vector<std::string> scenario_arguments(const CommonFlags& flags);

}  // namespace tandem
