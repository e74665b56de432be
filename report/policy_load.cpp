#include "report/policy_load.hpp"

#include <algorithm>
#include <array>

namespace tandem {
namespace {

double copy_s(const Command& command, const CostModel& cost, double factor) {
  return factor * seconds(cost.copy_ns(command.lane.engine, command.part.bytes));
}

double part_s(const Graph& graph, const Command& command, const CostModel& cost, const Rates& rates) {
  const Op& op = graph.op(command.op);
  const double whole = run_s(graph, op, command.lane.engine, cost, rates);
  if (op.writes.empty() || command.part.bytes == 0) return whole;
  return whole * static_cast<double>(command.part.bytes) /
         static_cast<double>(graph.value(op.writes.front().value).bytes);
}

bool over_pcie(Engine engine) { return engine == Engine::H2D || engine == Engine::D2H; }

class Loads {
 public:
  void add(Engine engine, double s) { lanes_[static_cast<std::size_t>(engine)] += s; }
  void add_pcie(double s) { pcie_ += s; }
  void add_dram(double s) { dram_ += s; }
  PolicyLoad largest() const {
    PolicyLoad found{pcie_, "pcie"};
    if (dram_ > found.seconds) found = {dram_, "dram"};
    for (int i = 0; i < kEngineCount; ++i)
      if (lanes_[static_cast<std::size_t>(i)] > found.seconds)
        found = {lanes_[static_cast<std::size_t>(i)], std::string(name_of(static_cast<Engine>(i)))};
    return found;
  }

 private:
  std::array<double, kEngineCount> lanes_{};
  double pcie_ = 0, dram_ = 0;
};

}  // namespace

PolicyLoad policy_load(const RankTimeline& rank, const CostModel& cost, const Rates& rates) {
  Loads loads;
  for (const TimedCommand& timed : rank.commands) {
    if (timed.command == nullptr || timed.command->kind == CommandKind::Release) continue;
    const Command& command = *timed.command;
    const Engine engine = command.lane.engine;
    if (command.kind == CommandKind::Run) {
      const double s = part_s(*rank.graph, command, cost, rates);
      loads.add(engine, s);
      if (operand_tier(engine) == Tier::Device) continue;
      const Work& work = rank.graph->work_of(rank.graph->op(command.op));
      const double whole = run_s(*rank.graph, rank.graph->op(command.op), engine, cost, rates);
      if (whole > 0) loads.add_dram(dram_bytes(work, whole, rates) * rates.dram_s_per_byte * s / whole);
      continue;
    }
    loads.add(engine, copy_s(command, cost, rates.copy));
    if (!over_pcie(engine)) continue;
    const double bytes = static_cast<double>(command.part.bytes) * rates.shared_copy;
    loads.add_pcie(bytes * rates.pcie_s_per_byte);
    loads.add_dram(bytes * rates.dram_s_per_byte);
  }
  return loads.largest();
}

}  // namespace tandem
