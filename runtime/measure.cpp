#include "runtime/measure.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <set>

#include "analysis/skipped_steps.hpp"
#include "cli/cli.hpp"
#include "cli/measurements.hpp"
#include "cli/siblings.hpp"
#include "core/base/errors.hpp"
#include "core/base/units.hpp"
#include "core/scenario/dirs.hpp"
#include "report/json_result.hpp"
#include "report/summary.hpp"
#include "runtime/executors/keeping_device.hpp"
#include "runtime/fingerprint.hpp"
#include "runtime/live_scenario.hpp"
#include "runtime/machine_probe.hpp"
#include "runtime/machine_speed.hpp"
#include "runtime/open_device.hpp"
#include "runtime/rank_processes.hpp"
#include "runtime/run_watch.hpp"
#include "runtime/train.hpp"

namespace tandem {
namespace {

struct MeasureFlags {
  CommonFlags common;
  std::string results, device = "cpu";
  std::vector<std::string> files;
  double minutes = std::numeric_limits<double>::infinity();
  std::int64_t warm_steps = 2, timed_steps = 5, processes = 0;
  bool probe = false;
};

struct Job {
  CommonFlags flags;
  HardwareProfile machine;
  Measurement measurement;
};

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

MeasureFlags parse_flags(int argc, char** argv) {
  CLI::App app{"Run scenarios for real, for tandem validate --measured", "tandem validate"};
  MeasureFlags flags;
  app.add_option(kMeasureOnly, flags.results, "The file that grows by a line a scenario")->required();
  app.add_option("FILES", flags.files, "Scenarios (YAML); scenarios/accuracy if none, with cuda scenarios/validation");
  app.add_option("--device", flags.device)->check(CLI::IsMember({"cpu", "cuda"}))->default_str("cpu");
  app.add_option("--minutes", flags.minutes, "Start no scenario after so long")->check(CLI::NonNegativeNumber);
  app.add_option("--warm-steps", flags.warm_steps, "Steps before those that count")->check(CLI::Range(1, 1000));
  app.add_option("--timed-steps", flags.timed_steps, "Steps that count")->check(CLI::Range(1, 1000));
  app.add_option("--nproc", flags.processes, "Data-parallel processes: sets workload.devices")
      ->check(CLI::Range(1, 64));
  app.add_flag("--probe", flags.probe, "First measure for seconds whether the machine is as fast as its profile says");
  add_setting_flags(app, flags.common);
  parse(app, argc, argv);
  if (flags.processes > 0) flags.common.overrides.push_back("workload.devices=" + std::to_string(flags.processes));
  flags.common.overrides.push_back("steps=" + std::to_string(flags.warm_steps + flags.timed_steps));
  if (flags.files.empty()) flags.files = scenarios_of(flags.device == "cuda" ? "validation" : "accuracy");
  return flags;
}

// A profile that comes with Tandem has a name that means the same everywhere. Another is found by its path only, once
// the scenario's text has left its folder.
void name_profile(CommonFlags& flags, const Scenario& scenario) {
  const std::filesystem::path profile = scenario.machine.path;
  const std::vector<std::string> known = profile_dirs();
  if (profile == scenario.path || std::find(known.begin(), known.end(), profile.parent_path()) != known.end()) return;
  flags.overrides.insert(flags.overrides.begin(), "machine=" + std::filesystem::absolute(profile).string());
}

Job make_job(const MeasureFlags& flags, const std::string& file) {
  Job job{flags.common, {}, {}};
  job.flags.scenario_path = file;
  const Scenario scenario = load_scenario(job.flags);  // what is wrong with any file is said before the first runs
  name_profile(job.flags, scenario);
  job.machine = scenario.machine;
  std::ifstream in(file, std::ios::binary);
  Measurement& m = job.measurement;
  m.scenario = std::filesystem::path(file).stem().string();
  m.text = {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  m.set = job.flags.overrides;
  if (job.flags.seed) m.set.push_back("seed=" + std::to_string(*job.flags.seed));
  m.warm_steps = flags.warm_steps;
  return job;
}

// Whether the machine is that of the profiles in use: a line for each of these, however many scenarios it has.
void compare_machines(const std::vector<Job>& jobs, const MeasureFlags& flags, const std::shared_ptr<Device>& device) {
  std::set<std::string> warnings;
  for (const Job& job : jobs) warnings.insert(fingerprint_warning(job.machine, device.get()));
  if (flags.probe) {
    const Probe probe = probe_now(device);
    for (const std::string& figure : figures(probe))
      if (!flags.common.quiet) std::fprintf(stderr, "probe: %s\n", figure.c_str());
    for (const Job& job : jobs) warnings.insert(probe_warning(job.machine, probe, device.get()));
  }
  if (flags.common.quiet) return;
  for (const std::string& warning : warnings) print_warning(warning);
}

nlohmann::ordered_json machine_of(Device* device) {
  const MachineFacts facts = probe_machine();
  nlohmann::ordered_json machine{{"processor", facts.processor}, {"cores", facts.cores}};
  if (device == nullptr) return machine;
  const DeviceFacts of_device = device->facts();
  machine.update({{"device", of_device.name}, {"driver", of_device.driver}});
  return machine;
}

void run(Job& job, const std::string& device_name, const std::shared_ptr<Device>& device) {
  const Scenario scenario = load_live_scenario(job.flags, device_name);
  TrainOptions options;
  options.device = device;
  const std::unique_ptr<Watchdog> watchdog = leading_watchdog(scenario);
  options.watchdog = watchdog.get();
  std::optional<RankProcesses> peers;
  if (scenario.workload.devices > 1) {
    std::vector<std::string> arguments = scenario_arguments(job.flags);
    arguments.push_back("--device=" + device_name);
    peers.emplace(static_cast<Rank>(scenario.workload.devices), arguments);
    options.meeting_file = peers->meeting_file();
    options.look_at_peers = [&] { peers->require_alive(); };
  }
  Training training(scenario, options);
  if (!job.flags.quiet) print_warning(training.data().remark());
  training.run();
  if (peers) {
    const Watchdog::Wait wait(watchdog.get(), "the other ranks, to end");
    peers->finish();
  }
  const RunRecord record = training.record();
  const Analysis analysis = analyse(record);
  if (const auto skipped = analysis.skipped_steps; !job.flags.quiet && 2 * skipped > scenario.steps)
    print_warning(scenario.path + ": " + std::to_string(skipped) + " of " + std::to_string(scenario.steps) +
                  " training steps were skipped, and what was measured is mostly these; " +
                  advice_on_skipped(scenario, analysis.loss_scale));
  job.measurement.result = to_json(analysis);
}

// Timed beside each run.
std::optional<double> update_rate_now(const Job& job, Device* device) {
  return update_rate_now(std::min(job.machine.cores, probe_machine().cores), device);
}

// That a scenario fails is part of the measurement; bad input is not.
void run_and_note(Job& job, const std::string& device_name, const std::shared_ptr<Device>& device) {
  const auto note = [&](int code, const std::exception& error) {
    job.measurement.exit_code = code;
    job.measurement.error = error.what();
  };
  try {
    run(job, device_name, device);
  } catch (const ConfigError&) {
    throw;
  } catch (const DoesNotFit& error) {
    note(kDoesNotFit, error);
  } catch (const std::exception& error) {
    note(kDeviceFailure, error);
  }
}

std::string outcome(const Measurement& m) {
  if (m.exit_code != kDone) return terminal_text(m.error);
  return format_time(m.result.at("step_time_s").at("median").get<double>()) + " a step";
}

}  // namespace

int measure(int argc, char** argv) {
  const MeasureFlags flags = parse_flags(argc, argv);
  if (!has_device(flags.device)) become("train-" + flags.device, std::vector<std::string>(argv + 1, argv + argc));
  const MeasurementFile results(flags.results);
  std::vector<Job> jobs;
  for (const std::string& file : flags.files) {
    Job job = make_job(flags, file);
    if (!results.has(job.measurement)) jobs.push_back(std::move(job));
  }
  if (const std::size_t there = flags.files.size() - jobs.size(); there > 0 && !flags.common.quiet)
    std::fprintf(stderr, "%zu of %zu scenarios are in %s already\n", there, flags.files.size(), flags.results.c_str());
  std::shared_ptr<Device> device = jobs.empty() ? nullptr : open_device(flags.device);
  if (device) device = std::make_shared<KeepingDevice>(device);
  if (!jobs.empty()) compare_machines(jobs, flags, device);
  const Stopwatch all;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (all.seconds() >= 60 * flags.minutes) {
      std::fprintf(stderr, "the time is used up: %zu scenarios are left; the same command goes on\n", jobs.size() - i);
      return kDone;
    }
    const Stopwatch one;
    Job& job = jobs[i];
    job.measurement.machine = machine_of(device.get());  // a device that is lost for good ends the run here
    const std::optional<double> before = update_rate_now(job, device.get());
    run_and_note(job, flags.device, device);
    const std::optional<double> after = update_rate_now(job, device.get());
    if (before && after) job.measurement.machine["cpu_optimizer"] = {*before, *after};
    results.append(job.measurement);
    if (!flags.common.quiet)
      std::fprintf(stderr, "[%zu/%zu] %s: %s (%s in all)\n", i + 1, jobs.size(), job.measurement.scenario.c_str(),
                   outcome(job.measurement).c_str(), format_time(one.seconds()).c_str());
  }
  return kDone;
}

}  // namespace tandem
