// `tandem compare-policies`: policies on one scenario, or over the values of one of its keys.
#include <algorithm>
#include <cstdio>
#include <optional>

#include "apps/commands.hpp"
#include "apps/sweep_flags.hpp"
#include "cli/atomic_file.hpp"
#include "cli/attempts.hpp"
#include "cli/standard_streams.hpp"
#include "core/base/errors.hpp"
#include "core/run/policies.hpp"
#include "core/scheduler/policy.hpp"
#include "report/policy_comparison.hpp"
#include "report/summary.hpp"
#include "sweep/run.hpp"

namespace tandem {
namespace {

// What ends the whole command: a world that failed, an input that no policy could have.
struct Ended {
  int exit_code;
  std::string why;
};

// An option of the scenario's own policy varies that one alone; the others, if asked for, are the same with each value.
std::vector<std::string> names_to_compare(const PoliciesFlags& flags, const Scenario& scenario,
                                          const std::string& over) {
  const std::string& own = scenario.policy.name;
  const bool varies_own = over.starts_with("policy.");
  if (flags.policies.empty() && varies_own) return {own};
  if (flags.policies.empty()) return policies_for(scenario);
  std::vector<std::string> names = read_names("--policies", flags.policies, names_of(all_policies()));
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
  if (!flags.common.quiet && flags.common.json != "-")
    attempt([&] { write_to_stdout(policies_text(comparison, flags.common.wide)); });
  if (!flags.csv.empty()) attempt([&] { write_file(flags.csv, policies_csv(comparison)); });
  if (!flags.common.report.empty()) attempt([&] { write_file(flags.common.report, policies_html(comparison)); });
  if (!flags.common.json.empty())
    attempt([&] {
      write_result(flags.common.json,
                   policies_json(comparison).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    });
  attempt.finish();
}

// What a policy refuses, cannot fit or fails at is a line of the table: it says nothing of the others.
PolicyRun policy_run(const std::string& policy, const std::string& value, SimulatedRow row, const KeyRange& range) {
  if (row.exit_code == kDeviceFailure) throw Ended{row.exit_code, "policy " + policy + ": " + row.why_not};
  if (row.exit_code == kBadInput && row.largest)
    throw Ended{kBadInput, "--largest: " + range.key + "=" + std::to_string(*row.largest) + ": " + row.why_not};
  PolicyRun run;
  static_cast<SimulatedRow&>(run) = std::move(row);
  run.policy = policy;
  run.value = value;
  return run;
}

Axis policies_axis(const std::vector<std::string>& names) {
  std::vector<Node> values;
  for (const std::string& name : names) values.push_back(read_yaml_value(name, "--policies", "policy"));
  return axis_of("policy", values, {});
}

// A sweep over the values of a key and the policies. The scenario's own policy keeps its options.
void run_all(const PoliciesFlags& flags, const std::optional<Axis>& over, const std::vector<std::string>& names,
             const std::string& own_policy, const KeyRange& range, PolicyComparison& comparison) {
  SweepPlan plan;
  if (over) plan.axes.push_back(*over);
  plan.axes.push_back(policies_axis(names));
  Progress progress("policies", flags.common.quiet);
  std::size_t begun = 0, ended = 0;
  comparison.runs.resize(plan.count());
  simulate_all({.base = scenario_arguments(flags.common),
                .largest = range,
                .processes = std::min(cores_here(), static_cast<int>(plan.count())),
                .next = [&]() -> std::optional<SweepPoint> {
                  if (begun == plan.count()) return std::nullopt;
                  const std::size_t number = begun++;
                  std::vector<std::string> settings = plan.settings_of(number, own_policy);
                  // An option of the scenario's own policy is no other's.
                  if (names[number % names.size()] != own_policy)
                    std::erase_if(settings, [](const std::string& s) { return s.starts_with("policy."); });
                  return SweepPoint{number, std::move(settings)};
                },
                .done =
                    [&](const SweepPoint& point, SimulatedRow row) {
                      const std::string& value = comparison.values[point.number / names.size()];
                      comparison.runs[point.number] =
                          policy_run(names[point.number % names.size()], value, std::move(row), range);
                      progress.update(static_cast<double>(++ended) / static_cast<double>(plan.count()));
                    }});
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
  std::optional<Axis> over;
  if (!flags.over.empty()) over = read_key_values("--over", flags.over);
  const std::string over_key = over ? over->name : "";
  const std::vector<std::string> names = names_to_compare(flags, scenario, over_key);
  const KeyRange range = flags.largest.empty() ? KeyRange{} : read_key_range("--largest", flags.largest);
  if (over && over_key == range.key)
    throw ConfigError("--largest: " + range.key + " is the key of --over; name another");
  PolicyComparison comparison{flags.common.scenario_path, scenario.machine.name, over_key, range.key, {}, {}};
  comparison.origin = origin_of(scenario);
  comparison.gpu = scenario.machine.gpu;
  comparison.optimizer = scenario.optimizer.name;
  if (!over) comparison.values = {""};
  if (over)
    for (const AxisValue& value : over->values) {
      check_setting(flags.common, "--over", over_key, value.label);
      comparison.values.push_back(value.label);
    }
  if (!range.key.empty()) check_setting(flags.common, "--largest", range.key, std::to_string(range.low));
  const Output checked(flags.common, inputs_of(scenario), {{"--csv", flags.csv}});
  try {
    run_all(flags, over, names, scenario.policy.name, range, comparison);
  } catch (const Ended& ended) {
    std::fprintf(stderr, "tandem: %s\n", terminal_text(ended.why).c_str());
    return ended.exit_code;
  }
  if (!over) sort_by_step(comparison.runs);
  write_all(flags, comparison);
  if (const int failure = say_failures(comparison); failure != kDone) return failure;
  for (const PolicyRun& run : comparison.runs)
    if (run.ran()) return kDone;
  std::fputs("tandem: no policy can run this scenario\n", stderr);
  return comparison.runs.front().exit_code;
}

}  // namespace tandem
