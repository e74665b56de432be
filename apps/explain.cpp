// `tandem explain`: why the steps of a scenario, or of a recorded run, take as long as they do, and what would shorten
// them, by simulations with one thing changed each.
#include <algorithm>
#include <fstream>

#include "apps/commands.hpp"
#include "apps/recorded_run.hpp"
#include "apps/simulations.hpp"
#include "apps/sweep_flags.hpp"
#include "cli/atomic_file.hpp"
#include "cli/attempts.hpp"
#include "cli/siblings.hpp"
#include "cli/standard_streams.hpp"
#include "core/base/errors.hpp"
#include "core/base/input_file.hpp"
#include "core/run/policies.hpp"
#include "core/run/succession.hpp"
#include "core/scheduler/policy.hpp"
#include "report/explanation.hpp"
#include "report/json_result.hpp"
#include "report/temporary_file.hpp"
#include "report/wrap.hpp"

namespace tandem {
namespace {

// So many steps tell what a resource is worth: policies have settled, and steps repeat.
constexpr std::int32_t kSteps = 12;
// Of a simulation: a second's work. Where so many steps have more, they are as few as the scenario's.
constexpr std::int64_t kMostCommands = 100'000;
constexpr double kFactor = 1.1;

// Pipes are scenarios: what was read of one to find out cannot be read again.
bool is_log(const std::string& path) {
  if (!other_than_a_file(path).empty()) return false;
  constexpr std::string_view kBegin = "tandem-log ";
  std::ifstream in(path, std::ios::binary);
  std::string begin(kBegin.size(), '\0');
  return in.read(begin.data(), static_cast<std::streamsize>(begin.size())) && begin == kBegin;
}

// What is explained.
struct Subject : Simulable {
  nlohmann::ordered_json run;  // a recorded one's result; null: it is to be simulated
};

Subject of_log(const ExplainFlags& flags, const TemporaryFolder& folder) {
  const std::string& log = flags.common.scenario_path;
  if (!flags.common.overrides.empty() || flags.common.seed)
    throw ConfigError("--set, --seed: have no meaning for a log, whose run is over; allowed: a scenario");
  const RecordedRun recorded(log, log);
  Subject subject{{parse_scenario(recorded.header().scenario, log), {folder.file("scenario.yaml")}}, {}};
  subject.run = to_json(analyse(recorded.record()));
  write_file(subject.arguments.front(), recorded.header().scenario);
  return subject;
}

Subject subject_of(const ExplainFlags& flags, const TemporaryFolder& folder) {
  const std::string& path = flags.common.scenario_path;
  if (is_log(path)) return of_log(flags, folder);
  return {simulable(flags.common, folder), {}};
}

// What the simulation of the scenario as it is says where it does not run: of one that does not fit, what helps.
int simulate_as_it_is(Subject& subject, const TemporaryFolder& folder) {
  std::vector<std::string> arguments = subject.arguments;
  if (subject.scenario.steps > kSteps && may_have_steps(subject.scenario, kSteps))
    arguments.push_back("--set=steps=" + std::to_string(kSteps));
  const std::string json = folder.file("run.json");
  for (const std::string& flag : {std::string("--quiet"), "--json=" + json}) arguments.push_back(flag);
  const int exit_code = run_child("simulate", arguments).exit_code;
  if (exit_code == kDone) subject.run = read_result(json);
  return exit_code;
}

// --set arguments of all simulations.
std::vector<std::string> settled(const Subject& subject) {
  const auto steps = subject.run.at("steps").get<std::int64_t>();
  const auto commands = subject.run.at("commands").get<std::int64_t>();
  const bool few = steps > kSteps || commands * kSteps <= kMostCommands * std::max<std::int64_t>(steps, 1);
  if (!few || !may_have_steps(subject.scenario, kSteps)) return {};
  return {"steps=" + std::to_string(kSteps)};
}

std::vector<std::string> policies_to_ask(const ExplainFlags& flags, const Scenario& scenario) {
  std::vector<std::string> others;
  for (const std::string& name : flags.policies.empty()
                                     ? policies_for(scenario)
                                     : read_names("--policies", flags.policies, names_of(all_policies())))
    if (name != scenario.policy.name) others.push_back(name);
  return others;
}

// Whether training under a policy with its defaults gives other losses. One that refuses the scenario does not train.
bool trains_otherwise(const Scenario& scenario, const std::string& policy) {
  try {
    const Scenario under = scenario_under(scenario, PolicyOptions{policy, {}});
    return approximate(find_policy(policy)->make(under)->traits().rewrites);
  } catch (const ConfigError&) {
    return false;
  }
}

Alternative alternative(const SimulatedRow& row) {
  if (!row.ran()) return {std::nullopt, row.why_not};
  return {row.result.at("step_time_s").at("median").get<double>(), ""};
}

Explanation explanation_of(const Subject& subject, const std::vector<std::string>& others, bool quiet) {
  const Scenario& scenario = subject.scenario;
  Explanation explanation{.gpu = scenario.machine.gpu,
                          .optimizer = scenario.optimizer.name,
                          .h2d_bytes_per_s = scenario.machine.h2d.bytes_per_s,
                          .run = subject.run,
                          .others = {.factor = kFactor}};
  explanation.settings = settled(subject);
  explanation.origin = origin_of(scenario);
  Simulations simulations(subject.arguments, explanation.settings);
  const std::size_t as_it_is = simulations.add({});
  std::vector<std::size_t> numbers;  // of resources, then of policies
  for (const MoreOf& more : more_of_each(scenario, kFactor)) {
    explanation.others.resources.push_back({more, {}});
    numbers.push_back(simulations.add(more.settings));
  }
  for (const std::string& name : others) {
    explanation.others.policies.push_back({name, trains_otherwise(scenario, name), {}});
    numbers.push_back(simulations.add({"policy={name: " + name + "}"}));
  }
  simulations.run(quiet);
  const auto& now = simulations.result(as_it_is);
  explanation.simulated_steps = now.at("steps").get<std::int64_t>();
  explanation.others.now_s = now.at("step_time_s").at("median").get<double>();
  auto number = numbers.begin();
  for (WorthOfMore& worth : explanation.others.resources) worth.with = alternative(simulations.row(*number++));
  for (OtherPolicy& other : explanation.others.policies) other.with = alternative(simulations.row(*number++));
  return explanation;
}

void write_all(const ExplainFlags& flags, const Explanation& explanation) {
  Attempts attempt;
  if (!flags.common.quiet && flags.common.json != "-")
    attempt(
        [&] { write_to_stdout(explanation_text(explanation, flags.common.wide ? kAnyColumns : kTerminalColumns)); });
  if (!flags.common.json.empty())
    attempt([&] {
      write_result(flags.common.json,
                   explanation_json(explanation).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    });
  if (!flags.common.report.empty()) attempt([&] { write_file(flags.common.report, explanation_html(explanation)); });
  attempt.finish();
}

}  // namespace

int explain(const ExplainFlags& flags) {
  const TemporaryFolder folder;
  Subject subject = subject_of(flags, folder);
  const Output checked(flags.common, inputs_of(subject.scenario));
  const std::vector<std::string> others = policies_to_ask(flags, subject.scenario);
  if (!flags.common.quiet) print_warnings(subject.scenario);
  if (subject.run.is_null())
    if (const int exit_code = simulate_as_it_is(subject, folder); exit_code != kDone) return exit_code;
  write_all(flags, explanation_of(subject, others, flags.common.quiet));
  return kDone;
}

}  // namespace tandem
