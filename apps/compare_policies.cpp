// `tandem compare-policies`: policies on one scenario, or over the values of one of its keys.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fstream>

#include "apps/commands.hpp"
#include "apps/sweep.hpp"
#include "cli/atomic_file.hpp"
#include "cli/attempts.hpp"
#include "cli/siblings.hpp"
#include "cli/standard_streams.hpp"
#include "core/base/errors.hpp"
#include "core/run/policies.hpp"
#include "core/scheduler/policy.hpp"
#include "report/policy_comparison.hpp"

namespace tandem {
namespace {

// What ends the whole command: an interrupt, an input that no policy could have.
struct Ended {
  int exit_code;
  std::string why;
};

// A failed CHECK, or the kernel short of memory; not a user who wants all of it to end.
bool ended_by_signal(int exit_code) {
  constexpr int kSignal = 128;
  return exit_code > kSignal && exit_code != kInterrupted && exit_code != kSignal + SIGTERM;
}

class Runs {
 public:
  Runs(const CommonFlags& flags, std::string own_policy) : flags_(flags), own_policy_(std::move(own_policy)) {}

  // The scenario's own policy keeps its options; the others run with their defaults, whatever options it has.
  PolicyRun run(const std::string& policy, const std::vector<std::string>& settings) const {
    PolicyRun run;
    run.policy = policy;
    const std::string json = folder_.file("result.json");
    std::vector<std::string> arguments = scenario_arguments(flags_);
    for (const std::string& setting : settings) arguments.push_back("--set=" + setting);
    if (policy != own_policy_) arguments.push_back("--set=policy={name: " + policy + "}");
    arguments.emplace_back("--json=-");
    arguments.emplace_back("--quiet");
    arguments.emplace_back("--no-trials");
    const ChildResult child = run_child("simulate", arguments, /*keep_errors=*/true, json);
    run.exit_code = child.exit_code;
    run.does_not_fit = child.exit_code == kDoesNotFit;
    if (child.exit_code != kDone) {
      run.why_not = child.reason();
      run.failed = ended_by_signal(child.exit_code);
      // What a policy refuses, cannot fit or fails at is a line of the table: it says nothing of the others.
      if (run.does_not_fit || run.failed || child.exit_code == kBadInput) return run;
      throw Ended{child.exit_code, "policy " + policy + ": " + run.why_not};
    }
    std::ifstream in(json);
    run.result = nlohmann::ordered_json::parse(in, nullptr, /*allow_exceptions=*/false);
    if (run.result.is_discarded())
      throw DeviceError(json + ": the simulation ended well, but its result cannot be read");
    return run;
  }

  // The run with the largest number of the range that fits, or why the smallest does not run. What is larger takes more
  // memory: the search doubles its steps up from LOW, so that it simulates little that is far too large, then bisects.
  PolicyRun largest(const std::string& policy, std::vector<std::string> settings, const KeyRange& range) const {
    settings.emplace_back();
    const auto try_with = [&](std::int64_t number) {
      settings.back() = range.key + "=" + std::to_string(number);
      PolicyRun run = this->run(policy, settings);
      if (run.ran()) run.largest = number;
      if (run.failed) run.why_not = settings.back() + ": " + run.why_not;
      return run;
    };
    PolicyRun best = try_with(range.low);
    if (!best.ran()) return best;
    std::int64_t fits = range.low, above = range.high + 1;
    for (std::int64_t step = 1; fits + 1 < above; step = std::min(step * 2, range.high)) {
      const std::int64_t number = above > range.high ? std::min(fits + step, range.high) : fits + (above - fits) / 2;
      PolicyRun run = try_with(number);
      if (run.failed) return run;
      if (run.exit_code == kBadInput) throw Ended{kBadInput, "--largest: " + settings.back() + ": " + run.why_not};
      if (!run.ran()) {
        above = number;
        continue;
      }
      fits = number;
      best = std::move(run);
    }
    return best;
  }

 private:
  const CommonFlags& flags_;
  std::string own_policy_;
  TemporaryFolder folder_;
};

std::vector<std::string> all_policies() {
  std::vector<std::string> names;
  for (const PolicyEntry* entry : policies()) names.emplace_back(entry->name);
  return names;
}

// An option of the scenario's own policy varies that one alone; the others, if asked for, are the same with each value.
std::vector<std::string> names_to_compare(const PoliciesFlags& flags, const std::string& own, const std::string& over) {
  const bool varies_own = over.starts_with("policy.");
  if (flags.policies.empty()) return varies_own ? std::vector<std::string>{own} : all_policies();
  std::vector<std::string> names = read_names("--policies", flags.policies, all_policies());
  if (varies_own && std::find(names.begin(), names.end(), own) == names.end())
    throw ConfigError("--over: " + over + " is an option of " + own +
                      ", the scenario's own policy, which --policies leaves out");
  return names;
}

// Refuses what the scenario cannot have before anything is simulated.
void check_setting(CommonFlags flags, const std::string& flag, const std::string& key, const std::string& value) {
  flags.overrides.push_back(key + "=" + value);
  try {
    load_scenario(flags);
  } catch (const ConfigError& error) {
    std::string lines;
    for (const std::string& finding : error.findings()) lines += (lines.empty() ? "" : "\n") + flag + ": " + finding;
    throw ConfigError(lines);
  }
}

void write_all(const PoliciesFlags& flags, const PolicyComparison& comparison) {
  Attempts attempt;
  if (!flags.common.quiet && flags.common.json != "-") attempt([&] { write_to_stdout(policies_text(comparison)); });
  if (!flags.csv.empty()) attempt([&] { write_file(flags.csv, policies_csv(comparison)); });
  if (!flags.common.report.empty()) attempt([&] { write_file(flags.common.report, policies_html(comparison)); });
  if (!flags.common.json.empty())
    attempt([&] {
      write_result(flags.common.json,
                   policies_json(comparison).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    });
  attempt.finish();
}

void run_all(const PoliciesFlags& flags, const std::vector<std::string>& names, const Runs& runs, const KeyRange& range,
             PolicyComparison& comparison) {
  Progress progress("policies", flags.common.quiet);
  const std::size_t all = names.size() * comparison.values.size();
  for (const std::string& value : comparison.values)
    for (const std::string& name : names) {
      progress.update(static_cast<double>(comparison.runs.size()) / static_cast<double>(all));
      std::vector<std::string> settings;
      if (!comparison.over.empty()) settings.push_back(comparison.over + "=" + value);
      comparison.runs.push_back(range.key.empty() ? runs.run(name, settings) : runs.largest(name, settings, range));
      comparison.runs.back().value = value;
    }
}

// Says which policies failed. Returns the first one's exit code, or kDone.
int say_failures(const PolicyComparison& comparison) {
  int exit_code = kDone;
  for (const PolicyRun& run : comparison.runs) {
    if (!run.failed) continue;
    std::fprintf(stderr, "tandem: policy %s failed: %s\n", run.policy.c_str(), run.why_not.c_str());
    if (exit_code == kDone) exit_code = run.exit_code;
  }
  return exit_code;
}

}  // namespace

int compare_policies(const PoliciesFlags& flags) {
  const Scenario scenario = load_scenario(flags.common);
  const SweptKey over = flags.over.empty() ? SweptKey{"", {""}} : read_key_values("--over", flags.over);
  const std::vector<std::string> names = names_to_compare(flags, scenario.policy.name, over.key);
  const KeyRange range = flags.largest.empty() ? KeyRange{} : read_key_range("--largest", flags.largest);
  if (!over.key.empty() && over.key == range.key)
    throw ConfigError("--largest: " + range.key + " is the key of --over; name another");
  if (!over.key.empty())
    for (const std::string& value : over.values) check_setting(flags.common, "--over", over.key, value);
  if (!range.key.empty()) check_setting(flags.common, "--largest", range.key, std::to_string(range.low));
  const Output checked(flags.common, inputs_of(scenario), {{"--csv", flags.csv}});
  PolicyComparison comparison{flags.common.scenario_path, scenario.machine.name, over.key, range.key, over.values, {}};
  try {
    run_all(flags, names, Runs(flags.common, scenario.policy.name), range, comparison);
  } catch (const Ended& ended) {
    std::fprintf(stderr, "tandem: %s\n", ended.why.c_str());
    return ended.exit_code;
  }
  if (over.key.empty()) sort_by_step(comparison.runs);
  write_all(flags, comparison);
  if (const int failure = say_failures(comparison); failure != kDone) return failure;
  for (const PolicyRun& run : comparison.runs)
    if (run.ran()) return kDone;
  std::fputs("tandem: no policy can run this scenario\n", stderr);
  return comparison.runs.front().exit_code;
}

}  // namespace tandem
