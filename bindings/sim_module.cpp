// The native half of tandem.simulate() under a policy in Python: what tandem-simulate is, in the process that has
// Python. A composition root, as sim/main.cpp is. Needs no torch.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <vector>

#include "analysis/analysis.hpp"
#include "bindings/errors.hpp"
#include "bindings/python_policy.hpp"
#include "bindings/sim_views.hpp"
#include "cli/cli.hpp"
#include "core/base/errors.hpp"
#include "core/yaml/overrides.hpp"
#include "core/yaml/yaml_tree.hpp"
#include "report/json_result.hpp"
#include "report/origin.hpp"
#include "sim/simulate.hpp"

namespace nb = nanobind;

namespace {

using tandem::ConfigError;
using tandem::Fidelity;
using tandem::Scenario;

// One that every family has, under whose name the scenario is read: what it says of policies is not asked.
constexpr const char* kStandIn = "policy={name: on_demand}";

Fidelity fidelity_named(const std::string& name) {
  if (name == "shared") return Fidelity::Shared;
  if (name == "alone") return Fidelity::Alone;
  throw ConfigError("fidelity: is '" + name + "'; allowed: shared, alone");
}

// What a result says of its origin names the policy that ran, not the one that stood in for it.
std::string under_its_policy(const std::string& text, const std::string& policy) {
  tandem::Node root = tandem::read_yaml(text, "scenario");
  tandem::apply(tandem::read_override("policy={name: " + policy + "}"), root);
  return tandem::to_yaml(root);
}

Scenario scenario_of(const std::string& path, const std::string& text, const std::string& directory,
                     std::vector<std::string> settings, const std::string& policy) {
  settings.emplace_back(kStandIn);
  Scenario scenario = path.empty() ? tandem::parse_scenario(text, "scenario", settings, directory)
                                   : tandem::load_scenario(path, settings);
  if (!scenario.switches.empty())
    throw ConfigError("switches: a policy in Python stays until the end; allowed: no switches");
  scenario.policy.name = policy;
  scenario.text = under_its_policy(scenario.text, policy);
  return scenario;
}

// The result as JSON, and what is odd in the scenario. `make(rank)`: an object of tandem.Policy. Files: "": none.
// `command`: how the caller would call it again.
nb::tuple simulate(const std::string& path, const std::string& text, const std::string& directory,
                   std::vector<std::string> settings, const std::string& name, const std::string& fidelity,
                   const std::string& trace, const std::string& report, const std::string& command,
                   const nb::callable& make) {
  tandem::tell_call(TANDEM_VERSION, command);
  const Scenario scenario = scenario_of(path, text, directory, std::move(settings), name);
  tandem::CommonFlags flags;
  flags.trace = trace, flags.report = report, flags.quiet = true;
  tandem::Output output(flags, tandem::inputs_of(scenario));
  tandem::Simulation simulation(scenario, fidelity_named(fidelity), [&](const Scenario&, tandem::Rank rank) {
    return std::make_unique<tandem::PythonPolicy>(make(rank));
  });
  simulation.run();
  const tandem::RunRecord record = simulation.record();
  output.write(record);
  auto result = to_json(tandem::analyse(record));
  put_origin(result, tandem::origin_of(scenario));
  return nb::make_tuple(result.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), scenario.warnings);
}

}  // namespace

NB_MODULE(_tandem_sim, m) {
  tandem::translate_errors();
  tandem::add_views(m);
  m.def("simulate", &simulate, nb::kw_only(), nb::arg("path"), nb::arg("text"), nb::arg("directory"),
        nb::arg("settings"), nb::arg("name"), nb::arg("fidelity"), nb::arg("trace"), nb::arg("report"),
        nb::arg("command"), nb::arg("make"));
}
