// `tandem compare`: a prediction beside a measurement.
#include <fmt/format.h>

#include <fstream>
#include <memory>

#include "analysis/step_difference.hpp"
#include "apps/commands.hpp"
#include "apps/recorded_run.hpp"
#include "cli/atomic_file.hpp"
#include "cli/attempts.hpp"
#include "cli/siblings.hpp"
#include "cli/standard_streams.hpp"
#include "core/base/errors.hpp"
#include "report/comparison.hpp"
#include "report/html.hpp"
#include "report/json_result.hpp"
#include "report/summary.hpp"
#include "report/trace.hpp"

namespace tandem {
namespace {

// Both runs of one scenario, with the results that they wrote themselves.
struct ComparedRuns {
  int exit_code = kDone;  // the first that is not 0: then there is nothing to compare
  std::unique_ptr<RecordedRun> predicted, measured;
  nlohmann::json predicted_json, measured_json;
  std::string predicted_log, measured_log;  // paths
};

nlohmann::json read_json(const std::string& path) {
  std::ifstream in(path);
  nlohmann::json json = nlohmann::json::parse(in, nullptr, false);
  if (json.is_discarded()) throw DeviceError(path + ": the run ended well, but its result cannot be read");
  return json;
}

// Of the two logs, which bear both runs' names.
std::vector<NamedPath> log_paths(const std::string& log) {
  if (log.empty()) return {};
  return {{"--log", log + ".predicted"}, {"--log", log + ".measured"}};
}

void copy_log(const std::string& from, const std::string& to) {
  std::ifstream in(from, std::ios::binary);
  AtomicFile file(to);
  std::string piece(std::size_t{1} << 20, '\0');
  do {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    file.write(std::string_view(piece).substr(0, static_cast<std::size_t>(in.gcount())));
  } while (in);
  if (!in.eof()) throw DeviceError(from + ": the run's log cannot be read");
  file.commit();
}

// Runs a part on a scenario's file and reads back what it wrote. Returns its exit code.
int run_part(const char* part, const std::string& scenario, const std::vector<std::string>& more,
             const TemporaryFolder& folder, nlohmann::json& result, std::string& log) {
  const std::string json = folder.file(std::string(part) + ".json");
  log = folder.file(std::string(part) + ".log");
  // The progress bar is the child's; its summary would repeat what the table says.
  std::vector<std::string> arguments{scenario, "--json=" + json, "--log=" + log, "--quiet"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const int exit_code = run_child(part, arguments).exit_code;
  if (exit_code == kDone) result = read_json(json);
  return exit_code;
}

ComparedRuns run_both(const CompareFlags& flags, const TemporaryFolder& folder) {
  ComparedRuns runs;
  std::vector<std::string> settings = setting_arguments(flags.common);
  std::string scenario = flags.common.scenario_path;
  if (!flags.measured.empty()) {
    runs.measured_log = flags.measured;
    runs.measured = std::make_unique<RecordedRun>(flags.measured, flags.measured);
    write_file(scenario = folder.file("scenario.yaml"), runs.measured->header().scenario);
  }
  runs.exit_code = run_part("simulate", scenario, settings, folder, runs.predicted_json, runs.predicted_log);
  if (runs.exit_code == kDone && !runs.measured) {
    settings.insert(settings.end(), flags.for_training.begin(), flags.for_training.end());
    runs.exit_code = run_part("train", scenario, settings, folder, runs.measured_json, runs.measured_log);
  }
  if (runs.exit_code != kDone) return runs;
  if (!runs.measured) runs.measured = std::make_unique<RecordedRun>(runs.measured_log, scenario);
  runs.predicted =
      std::make_unique<RecordedRun>(runs.predicted_log, flags.measured.empty() ? scenario : flags.measured);
  return runs;
}

std::string headline(const Scenario& scenario) {
  return fmt::format("{} · {} · policy {} · predicted beside measured\n", terminal_text(scenario.workload.family),
                     terminal_text(scenario.machine.name), terminal_text(scenario.policy.name));
}

// Why the profile says nothing of the machine that was measured; "" where nothing is known against it.
std::string mismatch(const HardwareProfile& machine, const nlohmann::json& measured) {
  std::string why = measured.value("other_machine", "");
  if (why.empty() && !machine.fingerprint) why = "names no machine that it was measured on";  // a log says no more
  return why.empty()
             ? ""
             : "machine: " + machine.name + " " + why + "; the prediction is of another machine than was measured";
}

void show(const CommonFlags& common, ComparedRuns& runs) {
  const RunRecord of_simulated = runs.predicted->record(), of_trained = runs.measured->record();
  Analysis predicted = analyse(of_simulated), measured = analyse(of_trained);
  if (runs.measured_json.is_null()) runs.measured_json = to_json(measured);  // a log is all that there is
  const nlohmann::json &of_predicted = runs.predicted_json, &of_measured = runs.measured_json;
  const std::vector<ComparedFigure> table = compare_results(of_predicted, of_measured);
  const StepDifference difference = step_difference(predicted, measured);
  if (!common.quiet) print_warning(mismatch(of_trained.scenario->machine, runs.measured_json));
  Attempts attempt;
  if (!common.quiet && common.json != "-")
    attempt([&] {
      write_to_stdout(headline(*of_trained.scenario) + comparison_text(table) + difference_text(difference));
    });
  if (!common.json.empty())
    attempt([&] {
      write_result(
          common.json,
          comparison_json(of_predicted, of_measured, table, difference, origin_of(*of_trained.scenario)).dump(2) +
              "\n");
    });
  if (const std::vector<NamedPath> logs = log_paths(common.log); !logs.empty()) {
    attempt([&] { copy_log(runs.predicted_log, logs[0].path); });
    attempt([&] { copy_log(runs.measured_log, logs[1].path); });
  }
  if (!common.report.empty()) attempt([&] { write_file(common.report, html_report({&predicted, &measured}, table)); });
  if (!common.trace.empty())
    attempt([&] {
      AtomicFile file(common.trace);
      write_trace({&predicted, &measured}, [&](std::string_view text) { file.write(text); });
      file.commit();
    });
  attempt.finish();
}

void check_paths(const CompareFlags& flags, const std::vector<NamedPath>& inputs) {
  CommonFlags common = flags.common;
  common.log.clear();
  std::vector<NamedPath> all{{"the log of --measured", flags.measured}};
  all.insert(all.end(), inputs.begin(), inputs.end());
  const Output checked(common, all, log_paths(flags.common.log));
}

}  // namespace

int compare(const CompareFlags& flags) {
  if (flags.common.scenario_path.empty() == flags.measured.empty())
    throw ConfigError("compare: FILE or --measured: exactly one of them says what to compare");
  check_paths(flags, {});
  if (flags.measured.empty()) {
    sibling("train");  // both must be there before one of them works for nothing
    const Scenario scenario = load_scenario(flags.common);
    check_paths(flags, inputs_of(scenario));
    if (!flags.common.quiet) print_warnings(scenario);
  }
  const TemporaryFolder folder;
  ComparedRuns runs = run_both(flags, folder);
  if (runs.exit_code == kDone) show(flags.common, runs);
  return runs.exit_code;
}

}  // namespace tandem
