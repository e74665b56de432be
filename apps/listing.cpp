// `tandem list`, `tandem check` and `tandem replay`.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "apps/commands.hpp"
#include "apps/recorded_run.hpp"
#include "cli/cli.hpp"
#include "core/optimizers/optimizer.hpp"
#include "core/run/load.hpp"
#include "core/run/policies.hpp"
#include "core/scenario/dirs.hpp"
#include "core/scheduler/policy.hpp"
#include "core/transforms/common/entry.hpp"
#include "core/workloads/workload.hpp"
#include "core/yaml/yaml_tree.hpp"
#include "report/machine_list.hpp"
#include "report/summary.hpp"

namespace tandem {
namespace {

void print_entry(std::string_view name, std::string_view summary) {
  std::fputs(fmt::format("{:<26} {}\n", terminal_text(name), terminal_text(summary)).c_str(), stdout);
}

// A file's first comment line says what it is.
std::string first_comment(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  if (!std::getline(in, line) || !line.starts_with("#")) return "";
  return line.substr(std::min(line.size(), line.find_first_not_of("# ")));
}

void list_files(const std::vector<std::string>& folders) {
  for (const std::string& folder : folders)
    for (const std::string& stem : yaml_stems(folder)) print_entry(stem, first_comment(folder + "/" + stem + ".yaml"));
}

// With what the file says of itself, or its first comment.
ListedMachine listed(const std::string& path) {
  const Node root = read_yaml(read_text_file(path), path);
  const Node *description = root.find("description"), *source = root.find("source");
  ListedMachine machine{load_profile(path), description != nullptr ? description->text : first_comment(path),
                        "datasheet"};
  if (source != nullptr && source->text.starts_with("measured")) machine.numbers = "measured";
  if (root.find("derive_from") != nullptr) machine.numbers = "derived";
  return machine;
}

// A profile that cannot be read is no reason not to list the others.
void list_machines() {
  std::vector<ListedMachine> machines;
  std::string broken;
  for (const std::string& folder : profile_dirs())
    for (const std::string& stem : yaml_stems(folder)) {
      const std::string path = folder + "/" + stem + ".yaml";
      try {
        machines.push_back(listed(path));
        machines.back().profile.name = stem;  // what scenarios call it
      } catch (const ConfigError& error) {
        broken += error.findings().front() + "\n";
      }
    }
  std::fputs(machines_text(machines).c_str(), stdout);
  std::fputs(broken.c_str(), stderr);
}

std::string options_of(const PolicyEntry& policy) {
  std::string text;
  for (std::string_view option : policy.options) text += (text.empty() ? "; options: " : ", ") + std::string(option);
  return text;
}

}  // namespace

namespace {

std::vector<std::string> folders_of(const std::string& what) {
  if (what == "models") return model_dirs();
  if (what == "products") return product_dirs();
  return what == "machines" ? profile_dirs() : scenario_dirs();
}

template <class Entries>
void print_names(const Entries& entries) {
  for (const auto* entry : entries) std::puts(std::string(entry->name).c_str());
}

}  // namespace

int list_names(const std::string& what) {
  if (what == "policies") {
    print_names(all_policies());
  } else if (what == "workloads") {
    print_names(workloads());
  } else if (what == "optimizers") {
    print_names(optimizers());
  } else if (what == "transforms") {
    print_names(transforms());
  } else {
    for (const std::string& folder : folders_of(what))
      for (const std::string& stem : yaml_stems(folder)) std::puts(terminal_text(stem).c_str());
  }
  return kDone;
}

int list(const std::string& what) {
  if (what == "policies") {
    for (const PolicyEntry* entry : all_policies())
      print_entry(entry->name, std::string(entry->summary) + options_of(*entry));
  } else if (what == "workloads") {
    for (const WorkloadEntry* entry : workloads()) print_entry(entry->name, entry->summary);
  } else if (what == "optimizers") {
    for (const OptimizerEntry* entry : optimizers()) print_entry(entry->name, entry->summary);
  } else if (what == "transforms") {
    for (const TransformEntry* entry : transforms())
      print_entry(entry->name, std::string(entry->summary) + "; asked for by " + std::string(entry->asked_by));
  } else if (what == "machines") {
    list_machines();
  } else {
    list_files(folders_of(what));
  }
  return kDone;
}

namespace {

// A pipe can be read but once, and holds a scenario or a profile.
bool is_sweep(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  try {
    return read_yaml(read_text_file(path), path).find("sweep") != nullptr;
  } catch (const ConfigError&) {
    return false;
  }
}

}  // namespace

int check_files(const std::vector<std::string>& files, const std::vector<std::string>& overrides, bool quiet) {
  int code = kDone;
  for (const std::string& file : files) {
    try {
      if (is_sweep(file)) {
        SweepFlags sweep;
        sweep.common.scenario_path = file;
        sweep.common.overrides = overrides;
        const std::size_t combinations = check_sweep(sweep);
        if (!quiet) std::printf("%s: a valid sweep of %zu combinations\n", terminal_text(file).c_str(), combinations);
        continue;
      }
      const CheckedFile checked = check_file(file, overrides);
      if (quiet) continue;
      const bool is_scenario = checked.kind == CheckedFile::Kind::Scenario;
      std::printf("%s: a valid %s\n", terminal_text(file).c_str(), is_scenario ? "scenario" : "profile");
      for (const std::string& warning : checked.warnings) print_warning(warning);
    } catch (const ConfigError& error) {
      // All files are looked at, whatever the first ones hold.
      for (const std::string& finding : error.findings()) std::fprintf(stderr, "%s\n", terminal_text(finding).c_str());
      code = kBadInput;
    }
  }
  return code;
}

int replay_log(const std::string& path, bool quiet) {
  const RecordedRun run(path);
  const ReplayReport& report = run.replayed();
  if (!report.difference.empty()) {
    std::fprintf(stderr, "tandem: %s: the scheduler answers the recorded events otherwise: %s\n",
                 terminal_text(path).c_str(), terminal_text(report.difference).c_str());
    std::fprintf(stderr, "(%lld commands before it are equal; recorded by build %s)\n",
                 static_cast<long long>(report.commands), terminal_text(run.header().build).c_str());
    return kBadInput;
  }
  if (!quiet)
    std::printf("%s: %lld commands, all as recorded (%s)\n", terminal_text(path).c_str(),
                static_cast<long long>(report.commands), terminal_text(run.header().mode).c_str());
  return kDone;
}

}  // namespace tandem
