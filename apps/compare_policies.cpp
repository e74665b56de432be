// `tandem compare-policies`: every policy on one scenario.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "apps/commands.hpp"
#include "apps/siblings.hpp"
#include "core/scenario/errors.hpp"
#include "core/scheduler/policy.hpp"
#include "report/atomic_file.hpp"
#include "report/units.hpp"

namespace tandem {
namespace {

struct PolicyRun {
  std::string policy;
  int exit_code = kDone;
  std::string why_not;    // the reason, where the exit code is not 0
  nlohmann::json result;  // where it is
  double step_s() const { return result.at("step_time_s").at("median").get<double>(); }
};

// The scenario's own policy keeps its options; the others run with their defaults, whatever options the scenario has.
PolicyRun run_policy(const CommonFlags& flags, const std::string& policy, bool own, const TemporaryFolder& folder) {
  PolicyRun run{policy, kDone, "", {}};
  const std::string json = folder.file(policy + ".json");
  std::vector<std::string> arguments = scenario_arguments(flags);
  if (!own) arguments.push_back("--set=policy={name: " + policy + "}");
  arguments.push_back("--json=" + json);
  arguments.push_back("--quiet");
  const ChildResult child = run_child("simulate", arguments, true);
  run.exit_code = child.exit_code;
  if (child.exit_code != kDone) {
    run.why_not = child.reason();
    return run;
  }
  std::ifstream in(json);
  run.result = nlohmann::json::parse(in, nullptr, false);
  if (run.result.is_discarded()) throw DeviceError(json + ": the simulation ended well, but its result cannot be read");
  return run;
}

std::string largest_wait(const nlohmann::json& result) {
  std::string name = "-";
  double largest = 0;
  for (const auto& [cause, s] : result.at("exposed_s").items())
    if (s.get<double>() > largest) {
      largest = s.get<double>();
      name = cause;
    }
  return largest > 0 ? fmt::format("{} {}", name, format_time(largest)) : name;
}

void print_table(const std::vector<PolicyRun>& runs) {
  std::fputs(fmt::format("{:<22} {:>10} {:>8} {:>8} {:>12}  {}\n", "policy", "step", "of best", "compute",
                         "device peak", "largest wait a step")
                 .c_str(),
             stdout);
  const double best = runs.front().exit_code == kDone ? runs.front().step_s() : 0;
  for (const PolicyRun& run : runs) {
    if (run.exit_code != kDone) {
      std::fputs(fmt::format("{:<22} {}\n", run.policy, run.why_not).c_str(), stdout);
      continue;
    }
    const double step = run.step_s();
    std::fputs(fmt::format("{:<22} {:>10} {:>8} {:>8} {:>12}  {}\n", run.policy, format_time(step),
                           fmt::format("{:.2f}", step / best),
                           format_percent(run.result.at("busy_share").value("device0/compute", 0.0)),
                           format_bytes(run.result.at("peak_bytes").value("device0", std::int64_t{0})),
                           largest_wait(run.result))
                   .c_str(),
               stdout);
  }
}

void write_json(const std::string& path, const std::vector<PolicyRun>& runs) {
  nlohmann::ordered_json json{{"schema", 1}, {"policies", nlohmann::ordered_json::array()}};
  for (const PolicyRun& run : runs) {
    nlohmann::ordered_json row{{"policy", run.policy}, {"exit_code", run.exit_code}};
    if (run.exit_code == kDone)
      row["result"] = run.result;
    else
      row["why_not"] = run.why_not;
    json["policies"].push_back(std::move(row));
  }
  const std::string text = json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  path == "-" ? static_cast<void>(std::fputs(text.c_str(), stdout)) : write_file(path, text);
}

}  // namespace

int compare_policies(const CommonFlags& flags) {
  const Scenario scenario = load_scenario(flags);
  const TemporaryFolder folder;
  std::vector<PolicyRun> runs;
  Progress progress("policies", flags.quiet);
  for (const PolicyEntry* entry : policies()) {
    progress.update(static_cast<double>(runs.size()) / static_cast<double>(policies().size()));
    const std::string name(entry->name);
    runs.push_back(run_policy(flags, name, name == scenario.policy.name, folder));
    const int code = runs.back().exit_code;
    // What a policy refuses or cannot fit is a line of the table; an interrupt or a crash ends the command.
    if (code != kDone && code != kDoesNotFit && code != kBadInput) {
      std::fprintf(stderr, "tandem: policy %s: %s\n", name.c_str(), runs.back().why_not.c_str());
      return code;
    }
  }
  std::stable_sort(runs.begin(), runs.end(), [](const PolicyRun& a, const PolicyRun& b) {
    if ((a.exit_code == kDone) != (b.exit_code == kDone)) return a.exit_code == kDone;
    return a.exit_code == kDone && a.step_s() < b.step_s();
  });
  if (!flags.quiet && flags.json != "-") print_table(runs);
  if (!flags.json.empty()) write_json(flags.json, runs);
  if (runs.front().exit_code == kDone) return kDone;
  std::fputs("tandem: no policy can run this scenario\n", stderr);
  return runs.front().exit_code;
}

}  // namespace tandem
