// `tandem validate`: the training program measures, the simulator predicts, and the two meet in a file.
#include <cstdio>
#include <fstream>

#include "apps/commands.hpp"
#include "apps/measurements.hpp"
#include "apps/siblings.hpp"
#include "core/scenario/errors.hpp"
#include "report/atomic_file.hpp"
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

// Steps that differ by as much from each other are no steady run: what a few of them take is chance, so that the
// prediction is of many.
constexpr double kUnsteady = 0.15;
constexpr const char* kManySteps = "--set=steps=48";

bool unsteady(const nlohmann::ordered_json& result) {
  const auto& times = result.at("step_time_s");
  return times.at("p90").get<double>() - times.at("p10").get<double>() > kUnsteady * times.at("median").get<double>();
}

Prediction simulate(const Measurement& measurement, const CommonFlags& flags, const std::vector<std::string>& more) {
  const TemporaryFolder folder;
  const std::string file = folder.file(measurement.scenario + ".yaml"), json = folder.file("result.json");
  write_file(file, measurement.text);
  std::vector<std::string> arguments{file, "--quiet", "--json=" + json};
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

Prediction predict(const Measurement& measurement, const CommonFlags& flags) {
  Prediction prediction = simulate(measurement, flags, {});
  if (prediction.exit_code != kDone || !unsteady(prediction.result)) return prediction;
  const Prediction longer = simulate(measurement, flags, {kManySteps});
  if (longer.exit_code == kDone) prediction.result["step_time_s"] = longer.result.at("step_time_s");
  return prediction;
}

// All of the scenario but its policy.
std::string group_of(const Measurement& measurement, const CommonFlags& flags) {
  std::vector<std::string> overrides = measurement.set;
  overrides.insert(overrides.end(), flags.overrides.begin(), flags.overrides.end());
  overrides.emplace_back("policy={name: on_demand}");
  return parse_scenario(measurement.text, measurement.scenario, overrides).text;
}

void write_files(const ValidateFlags& flags, const ValidationTable& validation) {
  if (!flags.csv.empty()) write_file(flags.csv, validation_csv(validation));
  if (!flags.common.report.empty()) write_file(flags.common.report, validation_html(validation));
  if (!flags.common.json.empty()) write_result(flags.common.json, validation_json(validation).dump(2) + "\n");
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
  for (const Measurement& m : measurements) {
    const Prediction prediction = predict(m, flags.common);
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
      throw ConfigError(results + ": " + m.scenario + ": is no result (" + error.what() + ")");
    }
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
  if (!flags.measure_only.empty()) become("train", measuring(flags, flags.measure_only));
  const Output checked(flags.common);
  if (!flags.measured.empty()) return predict_all(flags, flags.measured);
  sibling("simulate");  // before the real runs work for nothing
  const TemporaryFolder folder;
  const std::string results = folder.file("measured.jsonl");
  const ChildResult child = run_child("train", measuring(flags, results));
  return child.exit_code == kDone ? predict_all(flags, results) : child.exit_code;
}

}  // namespace tandem
