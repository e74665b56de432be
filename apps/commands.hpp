// The commands that `tandem` carries out itself. Each returns an exit code; must not know how flags are parsed.
#pragma once

#include <string>
#include <vector>

#include "cli/cli.hpp"

namespace tandem {

// Simulates and trains FILE, or simulates what a log of a real run recorded, and prints predicted beside measured and
// where the difference comes from.
struct CompareFlags {
  CommonFlags common;
  std::string measured;                   // a log; "": FILE is trained
  std::vector<std::string> for_training;  // flags of the training alone
};
int compare(const CompareFlags& flags);
// Errors of the prediction over many scenarios. Its two halves may run on two machines, one with the device and one
// with the simulator, and meet in a file of measurements (measurements.hpp).
struct ValidateFlags {
  CommonFlags common;
  std::vector<std::string> files;          // none: those that come with Tandem
  std::string measure_only, measured;      // that file, for one half alone; both "": both halves
  bool as_probed = false;                  // each run on its machine as it was then
  std::string csv;                         // "": none
  std::vector<std::string> for_measuring;  // flags of the measured half alone
};
int validate(const ValidateFlags& flags);
// Simulates FILE with every policy and prints them by step time, with what does not fit.
struct PoliciesFlags {
  CommonFlags common;
  std::string policies;  // names joined by commas; "": all
  std::string over;      // "KEY=VALUE,VALUE,...": with each value
  std::string largest;   // "KEY=LOW..HIGH": with the largest number that fits
  std::string csv;       // "": none
};
int compare_policies(const PoliciesFlags& flags);
// Why the steps of a scenario, or of the run that a log recorded, take as long as they do; what 10% more of each
// resource and what other policies would bring, by simulation.
struct ExplainFlags {
  CommonFlags common;    // scenario_path: FILE or LOG
  std::string policies;  // names joined by commas; "": all
};
int explain(const ExplainFlags& flags);
// What each kind of module of FILE's network costs on either processor, and which pay on the CPU, by simulation.
int analyze(const CommonFlags& flags);
// How the best placement changes with the share of samples that have a modality.
struct MixFlags {
  CommonFlags common;
  std::string modalities;  // names joined by commas; each over its share, the others as the scenario has them
  int points = 11;         // shares from 0 to 1; 2 or more
};
int analyze_mix(const MixFlags& flags);
// Simulates all combinations of what FILE says, with a table that a killed sweep goes on with.
struct SweepFlags {
  CommonFlags common;
  std::string output;  // the table (SQLite); "": beside where it runs, named as FILE
  bool restart = false;
  std::string csv;  // "": none
  int jobs = 0;     // processes at a time; 0: one a core
};
int sweep(const SweepFlags& flags);
// The combinations that it would simulate. Throws ConfigError.
std::size_t check_sweep(const SweepFlags& flags);
// Writes a PyTorch module as a folder that trains (docs/import.md): becomes the importer in python/.
struct ImportFlags {
  std::string python;                  // "": the first one on the PATH that has torch
  std::vector<std::string> arguments;  // of the importer
};
int import_module(const ImportFlags& flags);
int check_files(const std::vector<std::string>& files, const std::vector<std::string>& overrides, bool quiet);
// `what`: policies, transforms, workloads, machines or scenarios.
int list(const std::string& what);
int list_names(const std::string& what);  // alone, one a line
int replay_log(const std::string& path, bool quiet);

}  // namespace tandem
