// `tandem validate`: the training program measures, the simulator predicts, and the two meet in a file.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "apps/commands.hpp"
#include "cli/atomic_file.hpp"
#include "cli/attempts.hpp"
#include "cli/measurements.hpp"
#include "cli/siblings.hpp"
#include "cli/standard_streams.hpp"
#include "core/base/errors.hpp"
#include "core/run/load.hpp"
#include "report/validation.hpp"

namespace tandem {
namespace {

std::vector<std::string> measuring(const ValidateFlags& flags, const std::string& results) {
  std::vector<std::string> arguments{"--measure-only=" + results};
  for (const auto& more : {flags.for_measuring, setting_arguments(flags.common), flags.files})
    arguments.insert(arguments.end(), more.begin(), more.end());
  if (flags.common.quiet) arguments.push_back("--quiet");
  return arguments;
}

struct Prediction {
  int exit_code = kDone;
  nlohmann::ordered_json result;
  std::string error;
};

// Steps that differ by as much from each other are no steady run: which ones lie among those that count may be chance,
// so that the prediction's interval needs many.
constexpr double kUnsteady = 0.15;
constexpr const char* kManySteps = "--set=steps=48";

bool unsteady(const nlohmann::ordered_json& result) {
  const auto& times = result.at("step_time_s");
  return times.at("p90").get<double>() - times.at("p10").get<double>() > kUnsteady * times.at("median").get<double>();
}

std::vector<std::string> overrides_of(const Measurement& measurement, const CommonFlags& flags) {
  std::vector<std::string> overrides = measurement.set;
  overrides.insert(overrides.end(), flags.overrides.begin(), flags.overrides.end());
  return overrides;
}

// The machine as it was then: where others share a host, its memory gives more or less from minute to minute. What the
// CPU's update took beside the run, by as many threads, takes the place of what calibration found. If these are all
// that there are, they fill the memory, and its bandwidth changes in proportion. "" where nothing was timed.
std::string profile_then(const Measurement& measurement, const CommonFlags& flags) {
  const auto timed = measurement.machine.value("cpu_optimizer", std::vector<double>{});
  if (timed.empty()) return "";
  const Scenario scenario = parse_scenario(measurement.text, measurement.scenario, overrides_of(measurement, flags));
  const HardwareProfile profile = load_profile(scenario.machine.path);
  const double mean = std::accumulate(timed.begin(), timed.end(), 0.0) / static_cast<double>(timed.size());
  const double change = mean / scenario.machine.cpu_optimizer_parameters_per_s;
  const double bytes_per_s = profile.tiers[static_cast<std::size_t>(Tier::HostPinned)].bytes_per_s;
  const bool all_cores = scenario.machine.cores == profile.cores;
  const auto times = [](double value, double by) { return std::to_string(std::llround(value * by)); };
  std::string uncertainty;  // what was measured again is as sure as it was
  for (const auto& [cause, u] : profile.uncertainty)
    uncertainty += (uncertainty.empty() ? "" : ", ") + std::string(name_of(cause)) + ": " + std::to_string(u.relative);
  return "derive_from: " + std::filesystem::absolute(profile.path).string() +
         "\ncpu: {optimizer: {rate: " + times(profile.cpu_optimizer_parameters_per_s, change) +
         "parameters/s}}\ntiers: {host_pinned: {bandwidth: " + times(bytes_per_s, all_cores ? change : 1) + "B/s}}\n" +
         (uncertainty.empty() ? "" : "uncertainty: {" + uncertainty + "}\n");
}

Prediction simulate(const Measurement& measurement, const CommonFlags& flags, const std::vector<std::string>& more) {
  const TemporaryFolder folder;
  const std::string file = folder.file(measurement.scenario + ".yaml"), json = folder.file("result.json");
  write_file(file, measurement.text);
  std::vector<std::string> arguments{file, "--quiet", "--no-trials", "--json=" + json};
  for (const std::string& setting : measurement.set) arguments.push_back("--set=" + setting);
  for (const std::string& setting : setting_arguments(flags)) arguments.push_back(setting);
  arguments.insert(arguments.end(), more.begin(), more.end());
  const ChildResult child = run_child("simulate", arguments, /*keep_errors=*/true);
  if (child.exit_code != kDone) return {child.exit_code, {}, child.reason()};
  std::ifstream in(json);
  Prediction prediction{kDone, nlohmann::ordered_json::parse(in, nullptr, /*allow_exceptions=*/false), ""};
  if (prediction.result.is_discarded()) throw DeviceError(json + ": the simulation's result cannot be read");
  return prediction;
}

Prediction predict(const Measurement& measurement, const ValidateFlags& flags) {
  const TemporaryFolder folder;
  std::vector<std::string> more;
  if (const std::string then = flags.as_probed ? profile_then(measurement, flags.common) : ""; !then.empty()) {
    const std::string file = folder.file("then.yaml");
    write_file(file, then);
    more.push_back("--set=machine=" + file);
  }
  Prediction prediction = simulate(measurement, flags.common, more);
  if (prediction.exit_code != kDone || !unsteady(prediction.result)) return prediction;
  more.emplace_back(kManySteps);
  const Prediction longer = simulate(measurement, flags.common, more);
  if (longer.exit_code == kDone) prediction.result["step_time_s"] = longer.result.at("step_time_s");
  return prediction;
}

// All of the scenario but its policy.
std::string group_of(const Measurement& measurement, const CommonFlags& flags) {
  std::vector<std::string> overrides = overrides_of(measurement, flags);
  overrides.emplace_back("policy={name: on_demand}");
  return parse_scenario(measurement.text, measurement.scenario, overrides).text;
}

// What predictions were made of: the scenarios, one YAML document each, and the machine where all have one.
void add(Origin& origin, const Measurement& measurement, const CommonFlags& flags) {
  const Origin one =
      origin_of(parse_scenario(measurement.text, measurement.scenario, overrides_of(measurement, flags)));
  if (origin.scenario.empty())
    origin.machine = one.machine, origin.provenance = one.provenance, origin.profile = one.profile;
  else if (origin.profile != one.profile)
    origin.machine = "of each scenario its own", origin.provenance = origin.profile = "";
  origin.scenario += (origin.scenario.empty() ? "# " : "---\n# ") + measurement.scenario + "\n" + one.scenario;
}

void write_files(const ValidateFlags& flags, const ValidationTable& validation) {
  Attempts attempt;
  if (!flags.csv.empty()) attempt([&] { write_file(flags.csv, validation_csv(validation)); });
  if (!flags.common.report.empty()) attempt([&] { write_file(flags.common.report, validation_html(validation)); });
  if (!flags.common.json.empty())
    attempt([&] { write_result(flags.common.json, validation_json(validation).dump(2) + "\n"); });
  attempt([] { finish_stdout(); });
  attempt.finish();
}

// Before anything runs. What is measured is read by the half that predicts.
void check_paths(const ValidateFlags& flags) {
  std::vector<NamedPath> inputs{{"the file of --measured", flags.measured}};
  for (const std::string& file : flags.files) inputs.push_back({"a scenario", file});
  const Output checked(flags.common, inputs, {{"--csv", flags.csv}, {"--measure-only", flags.measure_only}});
}

// The predicted half.
int predict_all(const ValidateFlags& flags, const std::string& results) {
  const std::vector<Measurement> measurements = read_measurements(results);
  if (measurements.empty()) throw ConfigError(results + ": holds no measurements");
  const bool prints = !flags.common.quiet && flags.common.json != "-";
  const auto print = [&](const std::string& text) {
    prints ? static_cast<void>(std::fputs(text.c_str(), stdout)) : void();
  };
  print(validation_head());
  ValidationTable validation;
  validation.origin = origin_of_program();
  for (const Measurement& m : measurements) {
    const Prediction prediction = predict(m, flags);
    if (prediction.exit_code == kBadInput || prediction.exit_code == kInterrupted) {
      std::fprintf(stderr, "tandem: %s\n", prediction.error.c_str());
      return prediction.exit_code;
    }
    if (prediction.exit_code != kDone || m.exit_code != kDone) {
      validation.failures.push_back({m.scenario, prediction.error, m.error});
      print(validation_line(validation.failures.back()));
      continue;
    }
    try {
      validation.rows.push_back(
          validate_scenario(m.scenario, group_of(m, flags.common), prediction.result, m.result, m.warm_steps));
    } catch (const nlohmann::json::exception& error) {
      throw ConfigError(results + ":" + std::to_string(m.line) + ":1: " + m.scenario + ": is no result (" +
                        error.what() + "); allowed: the result of a run");
    }
    add(validation.origin, m, flags.common);
    print(validation_line(validation.rows.back()));
  }
  print(validation_summary(validation));
  write_files(flags, validation);
  return kDone;
}

}  // namespace

int validate(const ValidateFlags& flags) {
  if (!flags.measure_only.empty() && !flags.measured.empty())
    throw ConfigError("validate: --measure-only and --measured are the two halves; name one, or neither for both");
  if (!flags.measured.empty() && !flags.files.empty())
    throw ConfigError("validate: --measured takes the scenarios from its file; name no others");
  check_paths(flags);
  if (!flags.measure_only.empty()) become("train", measuring(flags, flags.measure_only));
  if (!flags.measured.empty()) return predict_all(flags, flags.measured);
  sibling("simulate");  // before the real runs work for nothing
  const TemporaryFolder folder;
  const std::string results = folder.file("measured.jsonl");
  const ChildResult child = run_child("train", measuring(flags, results));
  return child.exit_code == kDone ? predict_all(flags, results) : child.exit_code;
}

}  // namespace tandem
