// tandem-calibrate and tandem-calibrate-cuda: measure this machine and write a hardware profile. A composition root:
// the only place that joins flags, the measurements and the file.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "calibration/calibrate.hpp"
#include "calibration/for_ranks.hpp"
#include "calibration/for_scenarios.hpp"
#include "calibration/gpu_design.hpp"
#include "calibration/profile_yaml.hpp"
#include "calibration/text.hpp"
#include "cli/atomic_file.hpp"
#include "cli/cli.hpp"
#include "cli/siblings.hpp"
#include "runtime/machine_probe.hpp"
#include "runtime/open_device.hpp"
#include "runtime/train.hpp"

namespace {

void say_quality(const tandem::Calibration& result) {
  std::fprintf(stderr, "fit\n");
  for (const std::string& line : tandem::residual_report(result.residuals))
    std::fprintf(stderr, "  %s\n", line.c_str());
  for (const std::string& remark : result.remarks) std::fprintf(stderr, "remark: %s\n", remark.c_str());
}

tandem::Calibration measure(const tandem::CalibrationOptions& options, const std::shared_ptr<tandem::Device>& device) {
  if (!device) return tandem::calibrate_cpu(options);
  return tandem::calibrate_device(options, device, tandem::gpu_design(options.quick, tandem::probe_machine().cores));
}

// The date, "2026-11-21".
std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  if (gmtime_r(&now, &parts) == nullptr) return "an unknown day";
  return tandem::printed("%04d-%02d-%02d", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

// What was measured must be a profile. Where it is none, minutes of work are still worth reading.
void check_profile(const std::string& text, const std::string& output) {
  try {
    tandem::parse_profile(text, output);
  } catch (const tandem::ConfigError&) {
    std::fprintf(stderr, "measured, but no profile:\n%s", text.c_str());
    throw;
  }
}

void open_file(const char* flag, const std::string& path, std::optional<tandem::AtomicFile>& file) {
  if (path.empty()) throw tandem::ConfigError(std::string(flag) + ": is empty; allowed: a file's name");
  try {
    file.emplace(path);
  } catch (const tandem::DeviceError& error) {
    throw tandem::ConfigError(std::string(flag) + ": " + error.what());
  }
}

void add_for_flags(CLI::App& app, tandem::ForFlags& flags) {
  app.add_option("--for", flags.files, "Measure the ops of these scenarios alone, as they are in a step (with --base)")
      ->type_name("FILE");
  app.add_option("--base", flags.base, "The profile of this machine that gives all else (with --for, --nproc)")
      ->type_name("PROFILE");
  app.add_option("--seconds", flags.seconds, "How long to run each scenario of --for, at most")
      ->check(CLI::Range(0.1, 600.0))
      ->default_str("5");
  app.add_option("--set", flags.overrides, "Replace a value of the scenarios of --for: path.to.key=value (repeatable)")
      ->type_name("path.to.key=value")
      ->allow_extra_args(false);
}

void check_for_flags(const CLI::App& app, const tandem::ForFlags& flags) {
  const auto refuse = [](const std::string& what) { throw tandem::ConfigError(what); };
  if (!flags.files.empty()) {
    if (flags.base.empty())
      refuse("--for: needs --base, a profile of this machine; to measure one: tandem calibrate --quick --output FILE");
    for (const char* flag : {"--quick", "--csv", "--allow-busy"})
      if (app.count(flag) > 0) refuse(std::string(flag) + ": has no meaning with --for; allowed: without it");
    return;
  }
  for (const char* flag : {"--base", "--seconds", "--set"})
    if (app.count(flag) > 0) refuse(std::string(flag) + ": has no meaning without --for; allowed: with it");
}

void add_rank_flags(CLI::App& app, tandem::RankFlags& flags) {
  app.add_option("--nproc", flags.ranks, "Measure the links between so many devices, and collectives (with --base)")
      ->check(CLI::Range(2, 64))
      ->type_name("N");
  app.add_option("--rank", flags.rank)->group("");
  app.add_option("--meeting-file", flags.meeting_file)->group("");
}

void check_rank_flags(const CLI::App& app, const tandem::ForFlags& flags) {
  if (flags.base.empty())
    throw tandem::ConfigError(
        "--nproc: needs --base, a profile of this machine; to measure one: tandem calibrate --quick --output FILE");
  for (const char* flag : {"--for", "--seconds", "--set", "--quick", "--csv", "--allow-busy"})
    if (app.count(flag) > 0)
      throw tandem::ConfigError(std::string(flag) + ": has no meaning with --nproc; allowed: without it");
}

int calibrate(int argc, char** argv) {
  CLI::App app{"Measure this machine and write its hardware profile", "tandem calibrate"};
  std::string device, output, csv;
  bool allow_busy = false;
  tandem::CalibrationOptions options;
  tandem::ForFlags for_flags;
  app.add_option("--device", device, "cpu: the CPU as a stand-in for a device; cuda: a GPU, and the CPU beside it")
      ->required()
      ->check(CLI::IsMember({"cpu", "cuda"}));
  app.add_option("--output", output, "The profile to write (YAML)")->required()->type_name("FILE.yaml");
  app.add_flag("--quick", options.quick, "Fewer sizes and repeats: under a minute instead of 3 to 4, less exact");
  app.add_flag("--allow-busy", allow_busy, "Write the profile, marked, also where the machine was busy or throttled");
  app.add_option("--csv", csv, "Write each timed op beside its prediction (CSV)")->type_name("FILE");
  app.add_flag("--quiet", options.quiet, "No progress and figures on stderr");
  add_for_flags(app, for_flags);
  tandem::RankFlags rank_flags;
  add_rank_flags(app, rank_flags);
  tandem::parse(app, argc, argv);
  const bool of_ranks = rank_flags.ranks > 1;
  if (of_ranks)
    check_rank_flags(app, for_flags);
  else
    check_for_flags(app, for_flags);
  if (!tandem::has_device(device))
    tandem::become("calibrate-" + device, std::vector<std::string>(argv + 1, argv + argc));
  if (of_ranks) {
    if (rank_flags.meeting_file.empty()) tandem::check_outputs({{"--output", output}}, {});
    rank_flags.base = for_flags.base;
    rank_flags.output = output;
    rank_flags.device = device;
    rank_flags.quiet = options.quiet;
    return tandem::calibrate_ranks(rank_flags, std::vector<std::string>(argv + 1, argv + argc));
  }
  const std::shared_ptr<tandem::Device> opened = tandem::open_device(device);

  if (!for_flags.files.empty()) {
    tandem::check_outputs({{"--output", output}}, {});
    for_flags.device = device;
    for_flags.output = output;
    for_flags.quiet = options.quiet;
    return tandem::calibrate_for(for_flags, opened);
  }
  std::optional<tandem::AtomicFile> file, table;  // before minutes of work
  tandem::check_outputs({{"--output", output}, {"--csv", csv}}, {});
  open_file("--output", output, file);
  if (!csv.empty()) open_file("--csv", csv, table);
  options.name = std::filesystem::path(output).stem().string();
  options.scratch_folder = tandem::TrainOptions::default_scratch_directory();
  tandem::Progress progress("timing ops", options.quiet);
  options.progress = [&](double done) { progress.update(done); };
  tandem::Calibration result = measure(options, opened);
  if (!options.quiet) say_quality(result);
  if (table) {
    table->write(tandem::residual_csv(result.residuals));
    table->commit();
  }
  // A quick look at a CPU serves demonstrations and tests, on machines that have other work, too.
  tandem::judge(result.conditions, allow_busy || (options.quick && !opened), result.profile);
  if (!options.quiet && !result.profile.fingerprint->busy.empty())
    tandem::print_warning("the machine was busy or throttled: " + result.profile.fingerprint->busy);
  const std::string source = "measured by tandem calibrate on " + result.source + ", " + today();
  const std::string text = tandem::profile_yaml(result.profile, result.description, source);
  check_profile(text, output);
  file->write(text);
  file->commit();
  if (!options.quiet) std::fprintf(stderr, "wrote %s\n", output.c_str());
  return tandem::kDone;
}

}  // namespace

int main(int argc, char** argv) { return tandem::run_main(argc, argv, calibrate); }
