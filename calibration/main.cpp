// tandem-calibrate: measures this machine and writes a hardware profile. A composition root: the only place that joins
// flags, the measurements and the file.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>

#include "apps/cli.hpp"
#include "calibration/calibrate.hpp"
#include "calibration/profile_yaml.hpp"
#include "report/atomic_file.hpp"
#include "runtime/train.hpp"

namespace {

void say_quality(const tandem::Calibration& result) {
  std::fprintf(stderr, "fit\n");
  for (const std::string& line : tandem::residual_report(result.residuals))
    std::fprintf(stderr, "  %s\n", line.c_str());
  for (const std::string& remark : result.remarks) std::fprintf(stderr, "remark: %s\n", remark.c_str());
}

int calibrate(int argc, char** argv) {
  CLI::App app{"Measure this machine and write its hardware profile", "tandem calibrate"};
  std::string device, output;
  tandem::CalibrationOptions options;
  app.add_option("--device", device, "What to measure")->required()->check(CLI::IsMember({"cpu", "cuda"}));
  app.add_option("--output", output, "The profile to write (YAML)")->required();
  app.add_flag("--quick", options.quick, "Fewer sizes and repeats: under a minute, less exact");
  app.add_flag("--quiet", options.quiet, "No progress and figures on stderr");
  tandem::parse(app, argc, argv);
  if (device == "cuda") throw tandem::ConfigError("--device: this build cannot measure cuda; allowed: cpu");

  std::optional<tandem::AtomicFile> file;
  try {
    file.emplace(output);  // before minutes of work
  } catch (const tandem::DeviceError& error) {
    throw tandem::ConfigError(std::string("--output: ") + error.what());
  }
  options.name = std::filesystem::path(output).stem().string();
  options.scratch_folder = tandem::TrainOptions::default_scratch_directory();
  tandem::Progress progress("timing ops", options.quiet);
  options.progress = [&](double done) { progress.update(done); };
  const tandem::Calibration result = tandem::calibrate_cpu(options);
  if (!options.quiet) say_quality(result);
  const std::string source = "measured by tandem calibrate on " + result.machine.processor + ", " + tandem::today();
  const std::string description = "This machine's CPU as a stand-in for a device, as tandem calibrate found it.";
  const std::string text = tandem::profile_yaml(result.profile, description, source);
  tandem::parse_profile(text, output);  // what was written must be a profile
  file->write(text);
  file->commit();
  if (!options.quiet) std::fprintf(stderr, "wrote %s\n", output.c_str());
  return tandem::kDone;
}

}  // namespace

int main(int argc, char** argv) { return tandem::run_main(argc, argv, calibrate); }
