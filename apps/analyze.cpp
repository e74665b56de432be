// `tandem analyze`: what the modules of a workload cost, where data of several modalities meet, and which modules pay
// on the CPU, by simulations.
#include <algorithm>
#include <optional>

#include "apps/commands.hpp"
#include "apps/placement_trials.hpp"
#include "apps/recorded_run.hpp"
#include "cli/attempts.hpp"
#include "cli/siblings.hpp"
#include "cli/standard_streams.hpp"
#include "core/base/errors.hpp"
#include "core/policies/common/first_step.hpp"
#include "core/step/placement.hpp"
#include "core/workloads/workload.hpp"
#include "report/wrap.hpp"

namespace tandem {
namespace {

// Policies have settled, and steps repeat.
constexpr std::int32_t kSteps = 8;

Network network_to_analyse(const Scenario& scenario) {
  const WorkloadEntry* family = find_workload(scenario.workload.family);
  if (family == nullptr || family->network == nullptr)
    throw ConfigError(scenario.path + ": workload.family: " + scenario.workload.family +
                      " has no modules to analyse: its steps are not made from a network; allowed: a family of models "
                      "(tandem list workloads)");
  return network_of(scenario);
}

// A simulation of the scenario as it is: its log, its result, or why there is none.
struct AsItIs {
  std::string log;
  nlohmann::ordered_json result;  // null: it did not run
  ChildResult child;
};

AsItIs simulate(const Simulable& subject, const std::vector<std::string>& settings, const TemporaryFolder& folder) {
  AsItIs run{folder.file("run.log"), {}, {}};
  const std::string json = folder.file("run.json");
  std::vector<std::string> arguments = subject.arguments;
  for (const std::string& setting : settings) arguments.push_back("--set=" + setting);
  for (const std::string& flag :
       {std::string("--quiet"), std::string("--no-trials"), "--json=" + json, "--log=" + run.log})
    arguments.push_back(flag);
  run.child = run_child("simulate", arguments, /*keep_errors=*/true);
  if (run.child.exit_code == kDone) run.result = read_result(json);
  return run;
}

Roof device_roof(const HardwareProfile& machine, DType type) {
  const auto peak = machine.peak_flops.find(type);
  const auto otherwise = machine.peak_flops.find(DType::F32);
  const double flops = peak != machine.peak_flops.end()        ? peak->second
                       : otherwise != machine.peak_flops.end() ? otherwise->second
                                                               : 0;
  return {flops, machine.tiers[static_cast<std::size_t>(Tier::Device)].bytes_per_s};
}

Roof cpu_roof(const HardwareProfile& machine, DType type) {
  if (machine.cpu_compute) return device_roof(*machine.cpu_compute, type);
  return {machine.cpu_flops, machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].bytes_per_s};
}

WorkloadReport report_on(const Scenario& scenario, const std::vector<std::string>& settings) {
  WorkloadReport report;
  report.scenario = scenario.path, report.machine = scenario.machine.name;
  report.policy = scenario.policy.name, report.family = scenario.workload.family;
  report.precision = name_of(scenario.workload.precision);
  report.gpu = scenario.machine.gpu;
  report.origin = origin_of(scenario);
  report.settings = settings;
  report.device = device_roof(scenario.machine, scenario.workload.precision);
  report.cpu = cpu_roof(scenario.machine, scenario.workload.precision);
  report.device_capacity_bytes = scenario.machine.tiers[static_cast<std::size_t>(Tier::Device)].capacity_bytes;
  return report;
}

// By the graph of a run, of which the second step is like all others, or of a first step that was built alone.
void add_groups(const Graph& graph, const Network& network, const Scenario& scenario, WorkloadReport& report) {
  const CostModel cost(scenario.machine);
  const std::vector<ModuleGroup> groups = groups_of(network);
  const std::vector<bool> on_cpu = modules_on_cpu(network, scenario);
  std::int32_t step = 0;
  for (OpId id = 0; id < graph.op_count(); ++id)
    if (graph.op(id).step == 1) step = 1;
  const std::vector<GroupCosts> costs = costs_of(graph, step, network, groups, cost);
  const std::vector<double> independent = independent_s(network, groups, costs);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    GroupReport& of = report.groups.emplace_back();
    of.group = groups[g];
    of.words = words_for(network, groups[g].modules);
    of.access = access_of(*network.modules[static_cast<std::size_t>(groups[g].modules.front())].module);
    of.costs = costs[g];
    of.independent_s = independent[g];
    for (const std::int32_t module : groups[g].modules) of.on_cpu += on_cpu[static_cast<std::size_t>(module)] ? 1 : 0;
  }
}

void add_run(const AsItIs& as_it_is, const Network& network, const Scenario& scenario, WorkloadReport& report) {
  const RecordedRun recorded(as_it_is.log, scenario.path);
  const RunRecord record = recorded.record();
  const Analysis run = analyse(record);
  add_groups(*record.ranks.front().graph, network, scenario, report);
  const std::vector<ModuleGroup> groups = groups_of(network);
  const std::vector<GroupShare> shares = shares_of(run, network, groups);
  for (std::size_t g = 0; g < groups.size(); ++g) report.groups[g].share = shares[g];
  report.others = shares.back();
  report.step_s = as_it_is.result.at("step_time_s").at("median").get<double>();
  report.device_peak_bytes = as_it_is.result.at("peak_bytes").at("device0").get<std::int64_t>();
  report.compute_s = run.compute_s;
  report.input = input_times(run, network);
  report.meetings = meetings_of(&run, network, groups);
}

void add_without_run(const AsItIs& as_it_is, const Network& network, const Scenario& scenario, WorkloadReport& report) {
  report.why_not = as_it_is.child.reason();
  add_groups(first_step(scenario, std::nullopt), network, scenario, report);
  report.meetings = meetings_of(nullptr, network, groups_of(network));
}

void write_all(const CommonFlags& flags, const WorkloadReport& report) {
  Attempts attempt;
  if (!flags.quiet && flags.json != "-")
    attempt([&] { write_to_stdout(workload_text(report, flags.wide ? kAnyColumns : kTerminalColumns)); });
  if (!flags.json.empty())
    attempt([&] {
      write_result(flags.json,
                   workload_json(report).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    });
  if (!flags.report.empty()) attempt([&] { write_result(flags.report, workload_html(report)); });
  attempt.finish();
}

}  // namespace

int analyze(const CommonFlags& flags) {
  const TemporaryFolder folder;
  const Simulable subject = simulable(flags, folder);
  const Scenario& scenario = subject.scenario;
  const Network network = network_to_analyse(scenario);
  check_outputs(outputs_of(flags), inputs_of(scenario));
  if (!flags.quiet) print_warnings(scenario);
  std::vector<std::string> settings;
  if (may_have_steps(scenario, kSteps)) settings.push_back("steps=" + std::to_string(kSteps));
  const AsItIs as_it_is = simulate(subject, settings, folder);
  const bool runs = as_it_is.child.exit_code == kDone;
  if (!runs && as_it_is.child.exit_code != kDoesNotFit) {
    std::fputs(as_it_is.child.errors.c_str(), stderr);
    return as_it_is.child.exit_code;
  }
  WorkloadReport report = report_on(scenario, settings);
  runs ? add_run(as_it_is, network, scenario, report) : add_without_run(as_it_is, network, scenario, report);
  Simulations simulations(subject.arguments, settings);
  try_placements(network, simulations, flags.quiet, report);
  write_all(flags, report);
  if (runs || report.best) return kDone;
  std::fputs(as_it_is.child.errors.c_str(), stderr);
  return kDoesNotFit;
}

}  // namespace tandem
