#include "analysis/module_costs.hpp"

#include <set>
#include <utility>

#include "core/base/units.hpp"

namespace tandem {
namespace {

bool is_pass(Phase phase) { return phase == Phase::Forward || phase == Phase::Recompute || phase == Phase::Backward; }

bool crosses(Role role) { return role == Role::Activation || role == Role::Gradient || role == Role::Parameter; }

class Costs {
 public:
  Costs(const Graph& graph, const Network& network, const std::vector<ModuleGroup>& groups, const CostModel& cost)
      : graph_(graph),
        cost_(cost),
        names_(network),
        group_of_(network.modules.size(), 0),
        costs_(groups.size()),
        read_(groups.size()) {
    for (std::size_t g = 0; g < groups.size(); ++g)
      for (const std::int32_t module : groups[g].modules) group_of_[static_cast<std::size_t>(module)] = g;
  }

  std::vector<GroupCosts> of(std::int32_t step) {
    for (OpId id = 0; id < graph_.op_count(); ++id)
      if (const Op& op = graph_.op(id); op.step == step && is_pass(op.phase)) take(op);
    for (TensorId id = 0; id < graph_.tensor_count(); ++id) take(graph_.tensor(id));
    for (GroupCosts& costs : costs_) add_transfers(costs);
    return std::move(costs_);
  }

 private:
  static constexpr std::size_t kNobody = static_cast<std::size_t>(-1);
  std::size_t group_of(std::int32_t module) const {
    return module == kNone ? kNobody : group_of_[static_cast<std::size_t>(module)];
  }

  void take(const Op& op) {
    const std::size_t group = group_of(names_.module_of(graph_, op));
    if (group == kNobody) return;
    GroupCosts& costs = costs_[group];
    const Work& work = graph_.work_of(op);
    const auto flops = static_cast<double>(work.flops()), bytes = static_cast<double>(CostModel::memory_bytes(work));
    (op.phase == Phase::Forward    ? costs.forward_flops
     : op.phase == Phase::Backward ? costs.backward_flops
                                   : costs.recompute_flops) += flops;
    (op.phase == Phase::Forward    ? costs.forward_bytes
     : op.phase == Phase::Backward ? costs.backward_bytes
                                   : costs.recompute_bytes) += bytes;
    add_time(costs.device, op.work, Engine::Compute);
    add_time(costs.cpu, op.work, Engine::CpuCompute);
    for (const ValueId value : op.reads) take_read(group, op, value);
  }

  void add_time(ProcessorTime& time, WorkId work, Engine engine) const {
    const bool device = engine == Engine::Compute;
    const double s = seconds(device ? cost_.repeated_run_ns(graph_, work) : cost_.run_ns(graph_, work, engine));
    time.seconds += s;
    if (cost_.measured(graph_, work, engine) != nullptr)
      time.measured_s += s;
    else if (has_body(work, device))
      time.fitted_s += s;
  }
  bool has_body(WorkId work, bool device) const {
    const HardwareProfile* profile = device ? &cost_.profile() : cost_.profile().cpu_compute.get();
    return profile != nullptr && profile->bodies.contains(graph_.work(work).body);
  }

  // A value that another group makes is copied once, however many ops read it.
  void take_read(std::size_t group, const Op& op, ValueId id) {
    const Value& value = graph_.value(id);
    const Tensor& tensor = graph_.tensor_of(id);
    const std::size_t owner = group_of(maker_of(value, tensor));
    if (op.phase == Phase::Backward && op.micro_batch == 0) keep(id, tensor);
    if (owner == kNobody || owner == group || !crosses(tensor.role)) return;
    if (!read_[group].insert(id).second) return;
    costs_[group].in_bytes += value.bytes;
    costs_[group].crossings += 1;
    if (!left_.insert(id).second) return;
    costs_[owner].out_bytes += value.bytes;
    costs_[owner].crossings += 1;
  }
  // Of what updates and loads write, the module whose tensor it is: their ops may be of several.
  std::int32_t maker_of(const Value& value, const Tensor& tensor) const {
    if (tensor.role == Role::Parameter || value.producer == kNone) return names_.module_of(tensor.name);
    return names_.module_of(graph_, graph_.op(value.producer));
  }

  // What a forward wrote and a backward reads was saved in between.
  void keep(ValueId id, const Tensor& tensor) {
    const Value& value = graph_.value(id);
    if (tensor.role != Role::Activation || value.producer == kNone) return;
    const Op& maker = graph_.op(value.producer);
    const std::size_t group = group_of(names_.module_of(graph_, maker));
    if (maker.phase == Phase::Forward && group != kNobody && kept_.insert(id).second)
      costs_[group].activation_bytes += value.bytes;
  }

  void take(const Tensor& tensor) {
    const std::size_t group = group_of(names_.module_of(tensor.name));
    if (group == kNobody) return;
    GroupCosts& costs = costs_[group];
    if (tensor.role == Role::Parameter && tensor.persistent) costs.parameter_bytes += tensor.bytes;
    if (tensor.role == Role::OptimizerState && tensor.persistent) costs.state_bytes += tensor.bytes;
    // Those of weights are buckets; gradients of activations come and go.
    if (tensor.role == Role::Gradient && tensor.layout != nullptr) costs.gradient_bytes += tensor.bytes;
  }

  void add_transfers(GroupCosts& costs) const {
    if (costs.crossings == 0 || costs.transfer_s > 0) return;
    const auto time = [&](Engine lane, std::int64_t bytes) {
      return bytes > 0 ? seconds(cost_.copy_ns(lane, bytes)) : 0.0;
    };
    costs.transfer_s = time(Engine::D2H, costs.in_bytes) + time(Engine::H2D, costs.out_bytes);
  }

  const Graph& graph_;
  const CostModel& cost_;
  const ModuleNames names_;
  std::vector<std::size_t> group_of_;  // by module
  std::vector<GroupCosts> costs_;
  std::vector<std::set<ValueId>> read_;  // by group
  std::set<ValueId> left_, kept_;
};

// By module: those that lead to it.
std::vector<std::vector<bool>> before(const Network& network) {
  const std::size_t count = network.modules.size();
  std::vector<std::vector<bool>> before(count, std::vector<bool>(count, false));
  for (std::size_t i = 0; i < count; ++i)
    for (const Source& source : network.modules[i].inputs) {
      if (source.from != Source::From::Output) continue;
      const auto index = static_cast<std::size_t>(source.index);
      before[i][index] = true;
      for (std::size_t j = 0; j < index; ++j)
        if (before[index][j]) before[i][j] = true;
    }
  return before;
}

}  // namespace

std::string_view ProcessorTime::evidence() const {
  constexpr double kNearlyAll = 0.9;
  if (measured_s >= kNearlyAll * seconds) return "measured";
  if (fitted_s >= kNearlyAll * seconds) return "fitted";
  return seconds - measured_s - fitted_s >= kNearlyAll * seconds ? "modelled" : "mixed";
}

std::vector<GroupCosts> costs_of(const Graph& graph, std::int32_t step, const Network& network,
                                 const std::vector<ModuleGroup>& groups, const CostModel& cost) {
  return Costs(graph, network, groups, cost).of(step);
}

std::vector<double> independent_s(const Network& network, const std::vector<ModuleGroup>& groups,
                                  const std::vector<GroupCosts>& costs) {
  const std::vector<std::vector<bool>> leads = before(network);
  const auto related = [&](std::int32_t a, std::int32_t b) {
    const auto i = static_cast<std::size_t>(a), j = static_cast<std::size_t>(b);
    return a == b || leads[i][j] || leads[j][i];
  };
  std::vector<double> sums(groups.size(), 0);
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (std::size_t other = 0; other < groups.size(); ++other) {
      if (other == g) continue;
      std::size_t apart = 0;
      for (const std::int32_t module : groups[other].modules) {
        bool any = false;
        for (const std::int32_t own : groups[g].modules) any = any || related(module, own);
        apart += any ? 0 : 1;
      }
      sums[g] +=
          costs[other].device.seconds * static_cast<double>(apart) / static_cast<double>(groups[other].modules.size());
    }
  return sums;
}

}  // namespace tandem
