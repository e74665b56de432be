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
#include "report/json_result.hpp"
#include "report/step_difference.hpp"
#include "report/summary.hpp"
#include "report/trace.hpp"

namespace tandem {
namespace {

// Both runs of one scenario, as files in a folder. The measured one may have been recorded before, elsewhere.
struct ComparedRuns {
  int exit_code = kDone;                                    // the first that is not 0
  std::string predicted_json, predicted_log, measured_log;  // paths
};

nlohmann::json read_json(const std::string& path) {
  std::ifstream in(path);
  nlohmann::json json = nlohmann::json::parse(in, nullptr, false);
  if (json.is_discarded()) throw DeviceError(path + ": the run ended well, but its result cannot be read");
  return json;
}

void write_json(const std::string& file, const nlohmann::ordered_json& json) {
  const std::string text = json.dump(2) + "\n";
  file == "-" ? static_cast<void>(std::fputs(text.c_str(), stdout)) : write_file(file, text);
}

void copy_logs(const std::string& to, const ComparedRuns& runs) {
  std::error_code error;
  for (const auto& [from, suffix] : {std::pair{runs.predicted_log, ".predicted"}, {runs.measured_log, ".measured"}})
    if (!std::filesystem::copy_file(from, to + suffix, std::filesystem::copy_options::overwrite_existing, error))
      throw DeviceError("cannot write " + to + suffix + ": " + error.message());
}

// `scenario`: a file, the scenario of both runs or of the recorded one.
int run_child_for(const char* part, const std::string& scenario, const std::string& json, const std::string& log,
                  const std::vector<std::string>& more) {
  // The progress bar is the child's; its summary would repeat what the table says.
  std::vector<std::string> arguments{scenario, "--json=" + json, "--log=" + log, "--quiet"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_child(part, arguments).exit_code;
}

ComparedRuns run_both(const CompareFlags& flags, const TemporaryFolder& folder) {
  ComparedRuns runs{kDone, folder.file("predicted.json"), folder.file("predicted.log"),
                    flags.measured.empty() ? folder.file("measured.log") : flags.measured};
  std::vector<std::string> settings = setting_arguments(flags.common);
  std::string scenario = flags.common.scenario_path;
  if (!flags.measured.empty())
    write_file(scenario = folder.file("scenario.yaml"), RecordedRun(flags.measured).header().scenario);
  runs.exit_code = run_child_for("simulate", scenario, runs.predicted_json, runs.predicted_log, settings);
  if (runs.exit_code != kDone || !flags.measured.empty()) return runs;
  settings.insert(settings.end(), flags.for_training.begin(), flags.for_training.end());
  runs.exit_code = run_child_for("train", scenario, folder.file("measured.json"), runs.measured_log, settings);
  return runs;
}

void show(const CompareFlags& flags, const ComparedRuns& runs) {
  const CommonFlags& common = flags.common;
  const std::string shown_as = flags.measured.empty() ? common.scenario_path : flags.measured;
  const RecordedRun simulated(runs.predicted_log, shown_as), trained(runs.measured_log, shown_as);
  const RunRecord of_simulated = simulated.record(), of_trained = trained.record();
  Analysis predicted = analyse(of_simulated), measured = analyse(of_trained);
  const nlohmann::json of_predicted = read_json(runs.predicted_json), of_measured = to_json(measured);
  const std::vector<ComparedFigure> table = compare_results(of_predicted, of_measured);
  const StepDifference difference = step_difference(predicted, measured);
  if (!common.quiet && common.json != "-") {
    const Scenario& scenario = *of_trained.scenario;
    std::fputs(fmt::format("{} · {} · policy {} · predicted beside measured\n", terminal_text(scenario.workload.family),
                           terminal_text(scenario.machine.name), terminal_text(scenario.policy.name))
                   .c_str(),
               stdout);
    std::fputs((comparison_text(table) + difference_text(difference)).c_str(), stdout);
  }
  if (!common.json.empty()) write_json(common.json, comparison_json(of_predicted, of_measured, table, difference));
  if (!common.log.empty()) copy_logs(common.log, runs);
  if (!common.report.empty()) write_file(common.report, html_report({&predicted, &measured}, table));
  if (common.trace.empty()) return;
  AtomicFile file(common.trace);
  write_trace({&predicted, &measured}, [&](std::string_view text) { file.write(text); });
  file.commit();
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

int compare(const CompareFlags& flags) {
  if (flags.common.scenario_path.empty() == flags.measured.empty())
    throw ConfigError("compare: FILE or --measured: exactly one of them says what to compare");
  const Output checked(flags.common);
  if (flags.measured.empty()) {
    sibling("train");  // both must be there before one of them works for nothing
    const Scenario scenario = load_scenario(flags.common);
    if (!flags.common.quiet) print_warnings(scenario);
  }
  const TemporaryFolder folder;
  const ComparedRuns runs = run_both(flags, folder);
  if (runs.exit_code == kDone) show(flags, runs);
  return runs.exit_code;
}

}  // namespace tandem
