#include "analysis/roofline.hpp"

#include <algorithm>

#include "core/machine/cost_model.hpp"

namespace tandem {
namespace {

// 0: not known.
double peak_flops(const HardwareProfile& machine, DType type) {
  for (const DType having : {type, DType::F32})
    if (const auto found = machine.peak_flops.find(having); found != machine.peak_flops.end()) return found->second;
  return 0;
}

class Sums {
 public:
  explicit Sums(const Scenario& scenario) : machine_(scenario.machine), cost_(scenario.machine) {
    sums_.peak_flops = peak_flops(machine_, scenario.workload.precision);
    sums_.bytes_per_s = machine_.tiers[static_cast<std::size_t>(Tier::Device)].bytes_per_s;
  }

  void add(const Graph& graph, const Command& command) {
    if (command.kind == CommandKind::Copy) {  // within the device's memory: read and written
      sums_.bytes += 2 * static_cast<double>(command.part.bytes);
      sums_.memory_s += seconds(cost_.copy_ns(Engine::Compute, command.part.bytes));
      return;
    }
    const Op& op = graph.op(command.op);
    const Work& work = graph.work_of(op);
    for (const Kernel& kernel : work.kernels) add(kernel, work.type, share_of(graph, op, command));
  }
  Roofline mean(double times) const {
    Roofline mean = sums_;
    for (double* sum : {&mean.flops, &mean.bytes, &mean.arithmetic_s, &mean.memory_s}) *sum /= times;
    return mean;
  }

 private:
  // Of a divisible op, that the command runs.
  static double share_of(const Graph& graph, const Op& op, const Command& command) {
    if (op.writes.empty() || command.part.bytes == 0) return 1;
    return static_cast<double>(command.part.bytes) / static_cast<double>(graph.value(op.writes.front().value).bytes);
  }
  void add(const Kernel& kernel, DType type, double share) {
    const auto flops = static_cast<double>(kernel.flops), bytes = static_cast<double>(kernel.bytes);
    if (kernel.kind == KernelKind::Fixed) return;  // a measured time says neither
    sums_.flops += flops * share;
    sums_.bytes += bytes * share;
    const bool arithmetic = flops * sums_.bytes_per_s > bytes * peak_flops(machine_, type);
    (arithmetic ? sums_.arithmetic_s : sums_.memory_s) +=
        share * seconds(cost_.kernel_ns(kernel, type, Engine::Compute));
  }

  const HardwareProfile& machine_;
  const CostModel cost_;
  Roofline sums_;
};

}  // namespace

Roofline roofline(const Timeline& timeline, const Steps& steps, const Scenario& scenario) {
  Sums sums(scenario);
  for (const RankTimeline& rank : timeline.ranks)
    for (const CommandId id : rank.lane(Engine::Compute))
      if (steps.counts(rank.at(id).finished.ns)) sums.add(*rank.graph, *rank.at(id).command);
  return sums.mean(static_cast<double>(steps.window_steps()) *
                   static_cast<double>(std::max<std::size_t>(1, timeline.ranks.size())));
}

}  // namespace tandem
