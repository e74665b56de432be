#include "analysis/compulsory.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "analysis/compulsory_bytes.hpp"
#include "core/base/units.hpp"
#include "core/machine/lane_time.hpp"
#include "core/machine/lanes.hpp"

namespace tandem {
namespace {

double best_s_per_byte(const CopyRate& rate, double factor) {
  if (rate.bytes_per_s <= 0) return 0;
  const auto& curve = rate.efficiency.y;
  const double best = curve.empty() ? 1 : *std::max_element(curve.begin(), curve.end());
  return factor / (rate.bytes_per_s * best);
}

double inverse(double rate) { return rate > 0 ? 1 / rate : 0; }

// The engine whose lane a host op must use, or none if it may choose.
bool only_engine(const Op& op, Engine& engine) {
  int found = 0;
  for (Engine host : {Engine::CpuCompute, Engine::CpuOptimizer, Engine::Loader})
    if (op.may_run_on(host)) {
      engine = host;
      ++found;
    }
  return found == 1;
}

Resource resource_of(Engine engine) {
  switch (engine) {
    case Engine::Collective:
      return Resource::Collective;
    case Engine::CpuCompute:
      return Resource::CpuCompute;
    case Engine::CpuOptimizer:
      return Resource::CpuOptimizer;
    case Engine::Loader:
      return Resource::Loader;
    default:
      return Resource::Compute;
  }
}

// Seconds of lanes that run ops, and bytes of DRAM that ops on the host use.
class LaneLoads {
 public:
  LaneLoads(const Graph& graph, const Sides& sides, const SteadyState& steady, const CostModel& cost,
            const BoundRates& rates)
      : graph_(graph), cost_(cost), rates_(rates) {
    for (OpId id = 0; id < graph.op_count(); ++id)
      if (sides.of_op[static_cast<std::size_t>(id)] != Side::Either && steady.counts(graph, id))
        take_fixed(graph.op(id));
    for (std::size_t k = 0; k < sides.classes.size(); ++k) take_class(sides.classes[k], k);
  }
  void append(std::vector<Requirement>& out) const {
    for (const auto& [resource, seconds] : loads_) out.push_back({resource, {seconds, {}}});
  }
  const Linear& dram() const { return dram_bytes_; }

 private:
  void take_fixed(const Op& op) {
    Engine engine = op.engine;
    const bool host = side_of(op) == Side::Host;
    if (host && !only_engine(op, engine)) return;
    if (!host && engine != Engine::Collective && !op.may_run_on(Engine::Compute)) return;
    if (!host && engine != Engine::Collective) engine = Engine::Compute;
    loads_[resource_of(engine)].constant += lane_s(op, engine);
    if (host) dram_bytes_.constant += dram_of(op, engine);
  }

  void take_class(const ShareClass& group, std::size_t k) {
    const Op& op = graph_.op(group.example);
    const auto count = static_cast<double>(group.ops);
    if (op.may_run_on(Engine::Compute))
      loads_[Resource::Compute].add(count * run_s(graph_, op, Engine::Compute, cost_, rates_), k);
    Engine host = Engine::CpuOptimizer;
    if (!only_engine(op, host)) return;
    const auto on_host = [&](Linear& load, double amount) {
      load.constant += amount;
      load.add(-amount, k);
    };
    on_host(loads_[resource_of(host)], count * lane_s(op, host));
    on_host(dram_bytes_, count * dram_of(op, host));
  }

  // Of each lane of the kind, if they share the ops evenly: teams of threads work side by side, streams of kernels
  // share the device.
  double lane_s(const Op& op, Engine engine) const {
    const int lanes = claims_cores(engine) ? lane_count(cost_.profile(), engine) : 1;
    return run_s(graph_, op, engine, cost_, rates_) / lanes;
  }

  double dram_of(const Op& op, Engine engine) const {
    return dram_bytes(graph_.work_of(op), run_s(graph_, op, engine, cost_, rates_), rates_);
  }

  const Graph& graph_;
  const CostModel& cost_;
  const BoundRates& rates_;
  std::map<Resource, Linear> loads_;
  Linear dram_bytes_;
};

Amount scaled(const Amount& amount, double factor) {
  Amount result;
  result.add(amount, factor);
  return result;
}

}  // namespace

void Linear::add(double amount, std::size_t share) {
  if (by_share.size() <= share) by_share.resize(share + 1, 0);
  by_share[share] += amount;
}

void Linear::add(const Linear& other, double factor) {
  constant += other.constant * factor;
  for (std::size_t k = 0; k < other.by_share.size(); ++k) add(other.by_share[k] * factor, k);
}

void Amount::add(const Amount& other, double factor) {
  linear.add(other.linear, factor);
  for (const Linear& hinge : other.hinges) {
    hinges.emplace_back();
    hinges.back().add(hinge, factor);
  }
}

BoundRates rates_of(const Scenario& scenario, bool with_truth) {
  const HardwareProfile& machine = scenario.machine;
  const TruthTimes truth = with_truth ? scenario.truth.least() : TruthTimes{};
  const double disk_time = truth.copy_time * truth.disk_time;
  BoundRates rates;
  rates.h2d_s_per_byte = best_s_per_byte(machine.h2d, truth.copy_time * lane_time(machine, Engine::H2D));
  rates.d2h_s_per_byte = best_s_per_byte(machine.d2h, truth.copy_time * lane_time(machine, Engine::D2H));
  rates.disk_read_s_per_byte = best_s_per_byte(machine.disk_read, disk_time * lane_time(machine, Engine::DiskRead));
  rates.disk_write_s_per_byte = best_s_per_byte(machine.disk_write, disk_time * lane_time(machine, Engine::DiskWrite));
  rates.copy = truth.copy_time;
  // Whether the truth's slower copies load what they share any longer is a world's matter: count no more than the
  // least.
  const double least = std::min(1.0, truth.copy_time);
  rates.shared_copy = least;
  rates.pcie_s_per_byte = inverse(machine.pcie_bytes_per_s);
  rates.dram_s_per_byte = inverse(machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].bytes_per_s);
  rates.h2d_latency_s = least * seconds(machine.h2d.latency_ns);
  rates.d2h_latency_s = least * seconds(machine.d2h.latency_ns);
  if (machine.one_pool)  // nothing goes from one memory to the other
    rates.h2d_s_per_byte = rates.d2h_s_per_byte = rates.pcie_s_per_byte = rates.h2d_latency_s = rates.d2h_latency_s = 0;
  rates.compute = truth.compute_time;
  rates.optimizer = truth.optimizer_time;
  rates.other = std::min({1.0, truth.compute_time, truth.copy_time, truth.optimizer_time});
  return rates;
}

double run_s(const Graph& graph, const Op& op, Engine engine, const CostModel& cost, const BoundRates& rates) {
  const double factor = engine == Engine::Compute        ? rates.compute
                        : engine == Engine::CpuOptimizer ? rates.optimizer
                                                         : rates.other;
  std::int64_t ns = cost.run_ns(graph, op.work, engine);
  if (engine == Engine::Compute) ns = std::min(ns, cost.repeated_run_ns(graph, op.work));
  return factor * seconds(ns);
}

double dram_bytes(const Work& work, double run_s, const BoundRates& rates) {
  const auto bytes = static_cast<double>(CostModel::memory_bytes(work));
  return rates.dram_s_per_byte > 0 ? std::min(bytes, run_s / rates.dram_s_per_byte) : bytes;
}

Demand compulsory_demand(const Graph& graph, const SteadyState& steady, const Scenario& scenario, const CostModel& cost,
                         const BoundRates& rates, std::int64_t ranks, States states) {
  const Sides sides = sort_sides(graph, steady);
  const LaneLoads lanes(graph, sides, steady, cost, rates);
  const CompulsoryBytes bytes = compulsory_bytes(graph, sides, steady, scenario, ranks, states);
  Demand demand;
  demand.shares = sides.classes.size();
  lanes.append(demand.requirements);
  const auto require = [&](Resource resource, const Amount& amount, double s_per_unit, double extra_s = 0) {
    Amount total = scaled(amount, s_per_unit);
    total.linear.constant += extra_s;
    demand.requirements.push_back({resource, std::move(total)});
  };
  for (std::size_t i = 0; i < bytes.up.size(); ++i) {
    const Amount &up = bytes.up[i], &down = bytes.down[i];
    require(Resource::H2D, up, rates.h2d_s_per_byte, static_cast<double>(bytes.up_copies) * rates.h2d_latency_s);
    require(Resource::D2H, down, rates.d2h_s_per_byte, static_cast<double>(bytes.down_copies) * rates.d2h_latency_s);
    Amount both = up;
    both.add(down);
    both = scaled(both, rates.shared_copy);
    require(Resource::Pcie, both, rates.pcie_s_per_byte);
    both.linear.add(lanes.dram(), 1);
    require(Resource::Dram, both, rates.dram_s_per_byte);
  }
  require(Resource::DiskRead, bytes.disk_read, rates.disk_read_s_per_byte);
  require(Resource::DiskWrite, bytes.disk_write, rates.disk_write_s_per_byte);
  return demand;
}

}  // namespace tandem
