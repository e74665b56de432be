#include "analysis/lower_bound.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "analysis/compulsory.hpp"
#include "analysis/critical_path.hpp"
#include "analysis/lp.hpp"
#include "analysis/policy_load.hpp"
#include "core/scenario/capacity.hpp"

namespace tandem {
namespace {

// A program's largest number. HiGHS takes rows for met that are violated by up to 1e-7, so the unit must be small
// beside the answer, in nanoseconds' worth.
constexpr double kLargest = 1e4;

double largest_constant(const Demand& demand) {
  double largest = 0;
  for (const Requirement& requirement : demand.requirements) {
    largest = std::max(largest, std::abs(requirement.seconds.linear.constant));
    for (double by_share : requirement.seconds.linear.by_share) largest = std::max(largest, std::abs(by_share));
  }
  return largest;
}

// The least possible length of the steps, in seconds, under those requirements that `counts` accepts.
template <typename Counts>
double solve(const Demand& demand, Counts&& counts) {
  const double largest = largest_constant(demand);
  if (largest == 0) return 0;
  const double unit = kLargest / largest;  // program's units a second
  LinearProgram program;
  const int length = program.add_variable(0, LinearProgram::kInfinity, 1);
  std::vector<int> shares;
  for (std::size_t k = 0; k < demand.shares; ++k) shares.push_back(program.add_variable(0, 1, 0));
  // variable - linear - others >= constant
  const auto bound_below = [&](int variable, const Linear& linear, const std::vector<int>& others) {
    std::vector<LinearProgram::Term> terms{{variable, 1.0}};
    for (std::size_t k = 0; k < linear.by_share.size(); ++k)
      if (linear.by_share[k] != 0) terms.emplace_back(shares[k], -unit * linear.by_share[k]);
    for (int other : others) terms.emplace_back(other, -1.0);
    program.add_row(unit * linear.constant, LinearProgram::kInfinity, terms);
  };
  for (const Requirement& requirement : demand.requirements) {
    if (!counts(requirement.resource)) continue;
    std::vector<int> above;
    for (const Linear& hinge : requirement.seconds.hinges) {
      above.push_back(program.add_variable(0, LinearProgram::kInfinity, 0));
      bound_below(above.back(), hinge, {});
    }
    bound_below(length, requirement.seconds.linear, above);
  }
  return program.minimise() / unit;
}

bool trivial(const Amount& amount) { return amount.linear.by_share.empty() && amount.hinges.empty(); }

// A resource whose load no share changes needs no program.
double alone(const Demand& demand, Resource resource) {
  double constant = 0;
  bool simple = true;
  for (const Requirement& requirement : demand.requirements) {
    if (requirement.resource != resource) continue;
    simple = simple && trivial(requirement.seconds);
    constant = std::max(constant, requirement.seconds.linear.constant);
  }
  return simple ? constant : solve(demand, [&](Resource r) { return r == resource; });
}

void raise(double& bound, double to) { bound = std::max(bound, to); }

bool any(Resource) { return true; }

struct Run {
  const RunRecord& record;
  const Steps& steps;
  std::int64_t ranks = 1;
};

void bound_policy(const RankTimeline& rank, const Run& run, const SteadyState& steady, const CostModel& cost,
                  const BoundRates& rates, LowerBound& bound) {
  const PolicyLoad load = policy_load(rank, run.steps.windows, steady, cost, rates);
  const double s = load.seconds / static_cast<double>(run.steps.window_steps());
  if (s <= bound.policy_step_s) return;
  bound.policy_step_s = s;
  bound.policy_held_by = load.resource;
}

// What the graph itself demands, on one of `ranks` that share a host.
void bound_graph(const Graph& graph, const SteadyState& steady, const Scenario& scenario, const BoundRates& rates,
                 std::int64_t ranks, LowerBound& bound) {
  const auto steps = static_cast<double>(steady.steps);
  const CostModel cost(scenario.machine);  // caches by the rank's own graph
  const Demand demand = compulsory_demand(graph, steady, scenario, cost, rates, ranks);
  for (int i = 0; i < kResourceCount; ++i) {
    const Resource resource = static_cast<Resource>(i);
    const double s = alone(demand, resource) / steps;
    const bool disk = resource == Resource::DiskRead || resource == Resource::DiskWrite;
    if (disk) {
      raise(bound.step_s["disk"], s);
    } else if (s > 0) {
      raise(bound.step_s[std::string(name_of(resource))], s);
    }
  }
  raise(bound.step_s["critical_path"], critical_path_s(graph, steady, cost, rates) / steps);
  raise(bound.step_s["overall"], solve(demand, any) / steps);
  const Demand on_host = compulsory_demand(graph, steady, scenario, cost, rates, ranks, States::OnHost);
  raise(bound.step_s["states_on_host"], solve(on_host, any) / steps);
}

void bound_rank(const RankTimeline& rank, const Run& run, LowerBound& bound) {
  const SteadyState steady = steady_state(*rank.graph);
  if (steady.steps == 0) return;
  const Scenario& scenario = *run.record.scenario;
  BoundRates rates = rates_of(scenario, run.record.mode == "simulated");
  if (!run.record.memory_shared) rates.dram_s_per_byte = 0;
  bound_graph(*rank.graph, steady, scenario, rates, run.ranks, bound);
  bound_policy(rank, run, steady, CostModel(scenario.machine), rates, bound);
}

// A tenth of a percent: closer than that, one resource alone explains the bound.
constexpr double kHoldsAlone = 0.999;

// The bounds that are no resource's.
bool is_joint(const std::string& name) { return name == "overall" || name == "states_on_host"; }

LowerBound empty_bound() {
  LowerBound bound;
  for (const char* key :
       {"compute", "h2d", "d2h", "cpu_optimizer", "disk", "critical_path", "states_on_host", "overall"})
    bound.step_s[key] = 0;
  return bound;
}

// `overall` is at least what each resource alone demands.
void join(LowerBound& bound) {
  double& overall = bound.step_s["overall"];
  const double shared = overall;
  double largest = 0;
  for (const auto& [name, s] : bound.step_s) {
    if (is_joint(name) || s <= largest) continue;
    largest = s;
    bound.held_by = name;
  }
  raise(overall, largest);
  raise(bound.step_s["states_on_host"], overall);
  if (shared > 0 && largest < kHoldsAlone * shared) bound.held_by = "shares";
}

}  // namespace

LowerBound lower_bound(const Graph& graph, const Scenario& scenario) {
  LowerBound bound = empty_bound();
  if (const SteadyState steady = steady_state(graph); steady.steps > 0)
    bound_graph(graph, steady, scenario, rates_of(scenario, /*with_truth=*/true), ranks_on_host(scenario), bound);
  join(bound);
  return bound;
}

LowerBound lower_bound(const RunRecord& record, const Timeline& timeline, const Steps& steps) {
  LowerBound bound = empty_bound();
  const std::int64_t ranks = ranks_on_host(*record.scenario);
  for (const RankTimeline& rank : timeline.ranks) bound_rank(rank, {record, steps, ranks}, bound);
  join(bound);
  if (const double overall = bound.overall(); overall > bound.policy_step_s) {
    bound.policy_step_s = overall;
    bound.policy_held_by = bound.held_by;
  }
  return bound;
}

}  // namespace tandem
