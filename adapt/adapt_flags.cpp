#include "adapt/adapt_flags.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <sstream>
#include <utility>

#include "cli/cli.hpp"
#include "core/base/errors.hpp"
#include "core/scenario/ranks.hpp"
#include "core/yaml/position.hpp"

namespace tandem {

void add_adapt_flags(CLI::App& app, AdaptFlags& flags) {
  app.add_flag("--adapt", flags.adapts,
               "Learn what the machine takes, and switch the policy where the rest of the run gains by it");
  app.add_option("--adapt-policies", flags.policies, "Switch among these policies alone (with --adapt)")
      ->type_name("POLICY,POLICY,...");
}

namespace {

std::vector<PolicyOptions> chosen(const AdaptFlags& flags, const Scenario& scenario) {
  std::vector<PolicyOptions> able = adapt_candidates(scenario), out;
  if (flags.policies.empty()) return able;
  std::istringstream names(flags.policies);
  for (std::string name; std::getline(names, name, ',');) {
    const auto found =
        std::find_if(able.begin(), able.end(), [&](const PolicyOptions& policy) { return policy.name == name; });
    if (found == able.end() && name != scenario.policy.name) {
      std::string allowed = scenario.policy.name;
      for (const PolicyOptions& policy : able) allowed += ", " + policy.name;
      throw ConfigError("--adapt-policies: '" + printable(name) + "' cannot go on in this run; allowed: " + allowed);
    }
    if (found != able.end()) out.push_back(*found);
  }
  return out;
}

}  // namespace

AdaptLoop::AdaptLoop(const AdaptFlags& flags, const Scenario& scenario, bool waits, bool quiet)
    : scenario_(scenario), adapts_(flags.adapts), quiet_(quiet) {
  if (!flags.policies.empty() && !adapts_) throw ConfigError("--adapt-policies: has no meaning without --adapt");
  if (!adapts_) return;
  if (rank_count(scenario) > 1)
    throw ConfigError("--adapt: a run of several devices keeps its policy; allowed: with workload.devices: 1");
  candidates_ = chosen(flags, scenario);
  forecaster_ = simulating_forecaster(scenario, waits);
  if (forecaster_ == nullptr)
    print_warning(
        "--adapt: no simulator is installed beside this program, so that nothing can be forecast: rates are "
        "learnt and logged, and the policy stays");
}

EventLog& AdaptLoop::watch(EventLog& inner, const Graph& graph, std::function<std::optional<Usage>()> usage) {
  if (!adapts_) return inner;
  AdaptOptions options;
  options.candidates = candidates_;
  options.usage = std::move(usage);
  if (!quiet_) options.tell = [](const std::string& line) { std::fprintf(stderr, "adapt: %s\n", line.c_str()); };
  adapter_ = std::make_unique<Adapter>(inner, graph, scenario_, std::move(forecaster_), std::move(options));
  return *adapter_;
}

std::vector<Input> AdaptLoop::take_inputs() {
  return adapter_ != nullptr ? adapter_->take_inputs() : std::vector<Input>();
}

std::vector<AdaptDecision> AdaptLoop::decisions() const {
  return adapter_ != nullptr ? adapter_->decisions() : std::vector<AdaptDecision>();
}

}  // namespace tandem
