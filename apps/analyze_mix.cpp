// `tandem analyze --mix`: how the best placement changes with the share of samples that have a modality, by simulations
// of the scenario with a mix that does not change.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "apps/commands.hpp"
#include "apps/simulations.hpp"
#include "cli/attempts.hpp"
#include "cli/standard_streams.hpp"
#include "core/base/errors.hpp"
#include "core/base/modality.hpp"
#include "core/run/policies.hpp"
#include "core/scheduler/policy.hpp"
#include "core/workloads/workload.hpp"
#include "core/yaml/position.hpp"
#include "report/mix_report.hpp"
#include "report/wrap.hpp"

namespace tandem {
namespace {

// So many have steps of all sizes that a mix draws.
constexpr std::int32_t kSteps = 32;

std::vector<std::string> media_of(const Scenario& scenario) {
  std::vector<std::string> found;
  const WorkloadEntry* family = find_workload(scenario.workload.family);
  if (family == nullptr || family->network == nullptr) return found;
  const auto& shared = family->keys->shared;
  if (std::find(shared.begin(), shared.end(), "mix") == shared.end()) return found;
  const Network network = network_of(scenario);
  for (const Modality modality : kModalities)
    for (const BatchTensor& tensor : network.batch)
      if (tensor.media == name_of(modality)) {
        found.emplace_back(name_of(modality));
        break;
      }
  return found;
}

std::vector<std::string> modalities_asked(const std::string& flag, const Scenario& scenario) {
  const std::vector<std::string> media = media_of(scenario);
  if (media.empty())
    throw ConfigError("--mix: the samples of " + scenario.workload.family +
                      " have no modalities to mix; allowed: a scenario of trimodal or multimodal_llm");
  std::vector<std::string> asked;
  for (std::size_t from = 0; from <= flag.size();) {
    const std::size_t end = std::min(flag.find(',', from), flag.size());
    asked.push_back(flag.substr(from, end - from));
    from = end + 1;
    if (std::find(media.begin(), media.end(), asked.back()) == media.end())
      throw ConfigError("--mix: '" + asked.back() + "' is nothing that the scenario's samples have; allowed: " +
                        join(media) + ", or several of them with commas");
  }
  return asked;
}

// What sees to states and updates stays as in the scenario.
std::string states_of(const Scenario& scenario) {
  const PolicyOptions& policy = scenario.policy;
  const PolicyEntry* entry = find_policy(policy.name);
  const bool places =
      entry != nullptr && std::find(entry->options.begin(), entry->options.end(), "states") != entry->options.end();
  if (!places) return ", states: " + policy.name;
  const auto states = policy.options.find("states");
  return states == policy.options.end() ? "" : ", states: " + states->second;
}

std::vector<MixPlacement> placements_of(const Scenario& scenario) {
  const std::string states = states_of(scenario);
  std::vector<MixPlacement> all{
      {"adaptive", "adaptive", "policy adaptive", false, "{name: adaptive" + states + "}"},
      {"static_best", "static", "policy static_best, the best it finds", false, "{name: static_best" + states + "}"}};
  const bool cpu = scenario.machine.cpu_compute != nullptr || scenario.machine.cpu_flops > 0;
  const std::int64_t most = cpu ? scenario.workload.micro_batches - 1 : 0;
  for (const std::int64_t on_cpu : std::set<std::int64_t>{0, std::min<std::int64_t>(1, most), (most + 1) / 2, most}) {
    for (const std::string where : {"workers", "device"}) {
      MixPlacement& one = all.emplace_back();
      one.name = on_cpu > 0 ? fmt::format("{}+{}", where, on_cpu) : where;
      one.heading = on_cpu > 0 ? fmt::format("{}+{}", where.front(), on_cpu) : where;
      one.words = (where == "workers" ? "transforms on workers" : "transforms on the device") +
                  (on_cpu > 0 ? fmt::format(", {} of {} micro-batches on the CPU", on_cpu, most + 1) : std::string());
      one.policy = fmt::format("{{name: static_best{}, transforms: {}, cpu_micro_batches: {}}}", states, where, on_cpu);
    }
  }
  return all;
}

// The shares of others are those that the scenario begins with.
std::map<std::string, double> shares_of(const Scenario& scenario) {
  std::map<std::string, double> shares;
  for (const std::string& modality : media_of(scenario)) shares[modality] = 1;
  if (!scenario.workload.mix.points.empty())
    for (const auto& [modality, share] : scenario.workload.mix.points.front().shares) shares[modality] = share;
  return shares;
}

std::string mix_setting(const std::map<std::string, double>& shares) {
  std::string text = "workload.mix=[{from_step: 0";
  for (const auto& [modality, share] : shares) text += fmt::format(", {}: {:.6g}", modality, share);
  return text + "}]";
}

// By the steps that are timed: batches that were made ahead at the start are used up, and the run's end is not near.
MixRun run_of(const nlohmann::ordered_json& result, const MixReport& report) {
  const auto times = result.at("step_time_s").at("all").get<std::vector<double>>();  // of all steps but the first
  double took_s = 0;
  for (std::int32_t step = report.first_timed; step < report.end_timed; ++step)
    took_s += times.at(static_cast<std::size_t>(step) - 1);
  const double samples =
      result.at("throughput").at("samples_per_s").get<double>() * result.at("step_time_s").at("median").get<double>();
  const nlohmann::ordered_json& limit = result.at("limited_by");
  return {took_s > 0 ? samples * (report.end_timed - report.first_timed) / took_s : 0,
          {limit.at("cause").get<std::string>(), limit.at("share").get<double>()}};
}

void simulate(MixReport& report, Simulations& simulations, const MixFlags& flags, const Scenario& scenario) {
  for (const std::string& modality : modalities_asked(flags.modalities, scenario)) {
    MixSweep& sweep = report.sweeps.emplace_back();
    sweep.modality = modality;
    std::map<std::string, double> shares = shares_of(scenario);
    for (const auto& [other, share] : shares)
      if (other != modality) sweep.others += fmt::format("{}{} {:.3g}", sweep.others.empty() ? "" : ", ", other, share);
    for (int i = 0; i < flags.points; ++i) {
      MixAtShare& point = sweep.points.emplace_back();
      point.share = static_cast<double>(i) / (flags.points - 1);
      shares[modality] = point.share;
      for (const MixPlacement& placement : report.placements)
        simulations.add({mix_setting(shares), "policy=" + placement.policy});
    }
  }
  simulations.run(flags.common.quiet);
}

// All that stops a simulation, except that it does not fit, stops the whole.
const SimulatedRow& checked(const SimulatedRow& row) {
  if (row.ran() || row.does_not_fit) return row;
  if (row.exit_code == kBadInput) throw ConfigError(row.why_not);
  throw DeviceError("a simulation failed: " + row.why_not);
}

void take_results(const Simulations& simulations, MixReport& report) {
  std::size_t number = 0;
  for (MixSweep& sweep : report.sweeps)
    for (MixAtShare& point : sweep.points)
      for (std::size_t p = 0; p < report.placements.size(); ++p) {
        const SimulatedRow& row = checked(simulations.row(number++));
        point.runs.push_back(row.ran() ? std::optional(run_of(row.result, report)) : std::nullopt);
        point.why_not.push_back(row.why_not);
      }
}

void write_all(const CommonFlags& flags, const MixReport& report) {
  Attempts attempt;
  if (!flags.quiet && flags.json != "-")
    attempt([&] { write_to_stdout(mix_text(report, flags.wide ? kAnyColumns : kTerminalColumns)); });
  if (!flags.json.empty())
    attempt([&] {
      write_result(flags.json, mix_json(report).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    });
  if (!flags.report.empty()) attempt([&] { write_result(flags.report, mix_html(report)); });
  attempt.finish();
}

}  // namespace

int analyze_mix(const MixFlags& flags) {
  const TemporaryFolder folder;
  const Simulable subject = simulable(flags.common, folder);
  const Scenario& scenario = subject.scenario;
  check_outputs(outputs_of(flags.common), inputs_of(scenario));
  if (!flags.common.quiet) print_warnings(scenario);
  MixReport report;
  report.scenario = scenario.path, report.machine = scenario.machine.name, report.family = scenario.workload.family;
  report.origin = origin_of(scenario);
  const bool may = may_have_steps(scenario, kSteps);
  const std::int32_t steps = may ? kSteps : scenario.steps;
  if (steps < 4)
    throw ConfigError("--mix: a run of " + std::to_string(steps) + " steps is too short; allowed: 4 or more");
  report.first_timed = steps / 4, report.end_timed = steps - steps / 16;
  report.placements = placements_of(scenario);
  Simulations simulations(
      subject.arguments, may ? std::vector<std::string>{"steps=" + std::to_string(steps)} : std::vector<std::string>{});
  simulate(report, simulations, flags, scenario);
  take_results(simulations, report);
  write_all(flags.common, report);
  for (const MixSweep& sweep : report.sweeps)
    for (const MixAtShare& point : sweep.points)
      if (best_fixed(report, point)) return kDone;
  return kDoesNotFit;
}

}  // namespace tandem
