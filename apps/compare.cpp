// `tandem compare`: a prediction beside a measurement.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "apps/commands.hpp"
#include "apps/recorded_run.hpp"
#include "apps/siblings.hpp"
#include "core/scenario/errors.hpp"
#include "report/atomic_file.hpp"
#include "report/comparison.hpp"
#include "report/html.hpp"
#include "report/summary.hpp"
#include "report/trace.hpp"

namespace tandem {
namespace {

// Both runs of one scenario, as files in a folder.
struct ComparedRuns {
  int exit_code = kDone;                                                   // the first that is not 0
  std::string predicted_json, measured_json, predicted_log, measured_log;  // paths
};

nlohmann::json read_json(const std::string& path) {
  std::ifstream in(path);
  nlohmann::json json = nlohmann::json::parse(in, nullptr, false);
  if (json.is_discarded()) throw DeviceError(path + ": the run ended well, but its result cannot be read");
  return json;
}

void write_files(const CommonFlags& flags, const ComparedRuns& runs, const nlohmann::json& predicted,
                 const nlohmann::json& measured, const std::vector<ComparedFigure>& table) {
  if (!flags.json.empty()) {
    const std::string text = comparison_json(predicted, measured, table).dump(2) + "\n";
    flags.json == "-" ? static_cast<void>(std::fputs(text.c_str(), stdout)) : write_file(flags.json, text);
  }
  if (!flags.log.empty()) {
    std::error_code error;
    for (const auto& [from, suffix] : {std::pair{runs.predicted_log, ".predicted"}, {runs.measured_log, ".measured"}})
      if (!std::filesystem::copy_file(from, flags.log + suffix, std::filesystem::copy_options::overwrite_existing,
                                      error))
        throw DeviceError("cannot write " + flags.log + suffix + ": " + error.message());
  }
  if (flags.report.empty() && flags.trace.empty()) return;
  const RecordedRun simulated(runs.predicted_log, flags.scenario_path), trained(runs.measured_log, flags.scenario_path);
  const RunRecord of_simulated = simulated.record(), of_trained = trained.record();
  Analysis above = analyse(of_simulated), below = analyse(of_trained);
  if (!flags.report.empty()) write_file(flags.report, html_report({&above, &below}, table));
  if (flags.trace.empty()) return;
  AtomicFile file(flags.trace);
  write_trace({&above, &below}, [&](std::string_view text) { file.write(text); });
  file.commit();
}

ComparedRuns run_both(const CommonFlags& flags, const std::vector<std::string>& train_arguments, bool with_logs,
                      const TemporaryFolder& folder) {
  ComparedRuns runs{kDone, folder.file("predicted.json"), folder.file("measured.json"), folder.file("predicted.log"),
                    folder.file("measured.log")};
  const auto run = [&](const char* part, const std::string& json, const std::string& log, bool train) {
    std::vector<std::string> arguments = scenario_arguments(flags);
    arguments.push_back("--json=" + json);
    if (with_logs) arguments.push_back("--log=" + log);
    // The progress bar is the child's; its summary would repeat what the table says.
    arguments.push_back("--quiet");
    if (train) arguments.insert(arguments.end(), train_arguments.begin(), train_arguments.end());
    return run_child(part, arguments).exit_code;
  };
  runs.exit_code = run("simulate", runs.predicted_json, runs.predicted_log, false);
  if (runs.exit_code == kDone) runs.exit_code = run("train", runs.measured_json, runs.measured_log, true);
  return runs;
}

}  // namespace

std::vector<std::string> setting_arguments(const CommonFlags& flags) {
  std::vector<std::string> arguments;
  for (const std::string& override_text : flags.overrides) arguments.push_back("--set=" + override_text);
  if (flags.seed) arguments.push_back("--seed=" + std::to_string(*flags.seed));
  return arguments;
}

std::vector<std::string> scenario_arguments(const CommonFlags& flags) {
  std::vector<std::string> arguments = setting_arguments(flags);
  arguments.insert(arguments.begin(), flags.scenario_path);
  return arguments;
}

int compare(const CommonFlags& flags, const std::vector<std::string>& train_arguments) {
  sibling("train");  // both must be there before one of them works for nothing
  const Scenario scenario = load_scenario(flags);
  const Output checked(flags);
  if (!flags.quiet) print_warnings(scenario);
  const TemporaryFolder folder;
  const bool with_logs = !flags.report.empty() || !flags.trace.empty() || !flags.log.empty();
  const ComparedRuns runs = run_both(flags, train_arguments, with_logs, folder);
  if (runs.exit_code != kDone) return runs.exit_code;
  const nlohmann::json predicted = read_json(runs.predicted_json), measured = read_json(runs.measured_json);
  const std::vector<ComparedFigure> table = compare_results(predicted, measured);
  if (!flags.quiet && flags.json != "-") {
    std::fputs(fmt::format("{} · {} · policy {} · predicted beside measured\n", terminal_text(scenario.workload.family),
                           terminal_text(scenario.machine.name), terminal_text(scenario.policy.name))
                   .c_str(),
               stdout);
    std::fputs(comparison_text(table).c_str(), stdout);
  }
  write_files(flags, runs, predicted, measured, table);
  return kDone;
}

}  // namespace tandem
