#include "core/run/succession.hpp"

#include <map>
#include <tuple>
#include <utility>

#include "core/base/check.hpp"
#include "core/run/policies.hpp"
#include "core/workloads/workload.hpp"

namespace tandem {
namespace {

std::unique_ptr<Policy> policy_of(const Scenario& scenario) {
  const PolicyEntry* entry = find_policy(scenario.policy.name);
  CHECK(entry != nullptr, scenario.policy.name);
  return entry->make(scenario);
}

std::unique_ptr<StepSource> source_of(const Scenario& scenario, const Policy& policy, Rank rank) {
  const WorkloadEntry* workload = find_workload(scenario.workload.family);
  CHECK(workload != nullptr, scenario.workload.family);
  return workload->make(scenario, policy.traits().rewrites, rank);
}

// What lives from step to step: bytes, type and part of each tensor.
using Kept = std::map<std::string, std::tuple<std::int64_t, DType, std::int64_t>>;

Kept kept_by(const Scenario& scenario) {
  Graph graph;
  source_of(scenario, *policy_of(scenario), 0)->prologue(graph);
  Kept kept;
  for (TensorId id = 0; id < graph.tensor_count(); ++id)
    if (const Tensor& tensor = graph.tensor(id); tensor.persistent)
      kept[tensor.name] = {tensor.bytes, tensor.type, tensor.first_element};
  return kept;
}

// Of what one keeps, the first that the other does not keep so.
std::string first_difference(const Kept& of, const Kept& other) {
  for (const auto& [name, shape] : of)
    if (const auto found = other.find(name); found == other.end() || found->second != shape) return name;
  return "";
}

}  // namespace

Scenario scenario_under(const Scenario& scenario, const PolicyOptions& policy) {
  Scenario out = scenario;
  out.policy = policy;
  out.switches.clear();
  return out;
}

PolicyOptions policy_after(const Scenario& scenario, std::int32_t steps) {
  PolicyOptions policy = scenario.policy;
  for (const PolicySwitch& to : scenario.switches)
    if (to.after_step <= steps) policy = to.policy;
  return policy;
}

std::string why_no_switch(const Scenario& from, const Scenario& to) {
  const std::string kAllowed = "; allowed: a policy that keeps the same";
  const WorkloadEntry* workload = find_workload(from.workload.family);
  CHECK(workload != nullptr, from.workload.family);
  if (!source_of(from, *policy_of(from), 0)->takes_over())
    return from.workload.family + " keeps its policy; allowed: no switches";
  const Kept before = kept_by(from), after = kept_by(to);
  if (const std::string lost = first_difference(before, after); !lost.empty())
    return from.policy.name + " keeps " + lost + " from step to step, and " + to.policy.name +
           " does not keep it as it is" + kAllowed;
  if (const std::string made_up = first_difference(after, before); !made_up.empty())
    return to.policy.name + " keeps " + made_up + " from step to step, and " + from.policy.name + " has none" +
           kAllowed;
  return "";
}

Scheduler::MakeSuccessor successor_of(const Scenario& scenario, Rank rank) {
  return [&scenario, rank](const PolicyOptions& policy, const HardwareProfile& machine, std::int32_t step) {
    Successor next;
    auto under = std::make_shared<Scenario>(scenario_under(scenario, policy));
    under->machine = machine;
    next.scenario = under;
    next.estimate = std::make_shared<const CostModel>(next.scenario->machine);
    // Policies plan by the first step of the scenario that they are made of.
    auto planned = std::make_shared<Scenario>(*under);
    planned->workload.mix = scenario.workload.mix.from(step);
    next.planned = planned;
    next.policy = policy_of(*planned);
    next.source = source_of(*under, *next.policy, rank);
    return next;
  };
}

}  // namespace tandem
