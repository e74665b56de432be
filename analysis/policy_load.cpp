#include "analysis/policy_load.hpp"

#include <algorithm>
#include <array>

namespace tandem {
namespace {

double copy_s(const Command& command, const CostModel& cost, double factor) {
  return factor * seconds(cost.copy_ns(command.lane.kind(), command.part.bytes));
}

double part_s(const Graph& graph, const Command& command, const CostModel& cost, const BoundRates& rates) {
  const Op& op = graph.op(command.op);
  const double whole = run_s(graph, op, command.lane.kind(), cost, rates);
  if (op.writes.empty() || command.part.bytes == 0) return whole;
  return whole * static_cast<double>(command.part.bytes) /
         static_cast<double>(graph.value(op.writes.front().value).bytes);
}

bool over_pcie(Engine engine) { return engine == Engine::H2D || engine == Engine::D2H; }

class Loads {
 public:
  // Streams of kernels share the device: they count as one.
  static_assert(LaneIndex(Engine::Compute).place() == 0);
  void add(LaneIndex lane, double s) { lanes_[lane.kind() == Engine::Compute ? 0 : lane.place()] += s; }
  void add_pcie(double s) { pcie_ += s; }
  void add_dram(double s) { dram_ += s; }
  PolicyLoad largest() const {
    PolicyLoad found{pcie_, "pcie"};
    if (dram_ > found.seconds) found = {dram_, "dram"};
    for (std::size_t place = 0; place < lanes_.size(); ++place)
      if (lanes_[place] > found.seconds) found = {lanes_[place], name_of(LaneIndex::at(place))};
    return found;
  }

 private:
  std::array<double, kLaneCount> lanes_{};
  double pcie_ = 0, dram_ = 0;
};

// The share of a command of `alone_s` that was done in the windows at least.
double share_within(const TimedCommand& timed, const std::vector<Window>& windows, double alone_s) {
  std::int64_t outside_ns = timed.finished.ns - timed.started.ns;
  for (const Window& window : windows)
    outside_ns -= std::max<std::int64_t>(
        0, std::min(timed.finished.ns, window.end_ns) - std::max(timed.started.ns, window.begin_ns));
  if (outside_ns <= 0) return 1;
  return alone_s > 0 ? std::max(0.0, 1 - seconds(outside_ns) / alone_s) : 0;
}

void add_run(const RankTimeline& rank, const TimedCommand& timed, const std::vector<Window>& windows,
             const CostModel& cost, const BoundRates& rates, Loads& loads) {
  const Command& command = *timed.command;
  const Engine engine = command.lane.kind();
  const double alone_s = part_s(*rank.graph, command, cost, rates);
  const double s = alone_s * share_within(timed, windows, alone_s);
  loads.add(command.lane.index, s);
  if (operand_tier(engine) == Tier::Device) return;
  const Op& op = rank.graph->op(command.op);
  const double whole = run_s(*rank.graph, op, engine, cost, rates);
  if (whole > 0) loads.add_dram(dram_bytes(rank.graph->work_of(op), whole, rates) * rates.dram_s_per_byte * s / whole);
}

void add_copy(const TimedCommand& timed, const std::vector<Window>& windows, const CostModel& cost,
              const BoundRates& rates, Loads& loads) {
  const Command& command = *timed.command;
  const double alone_s = copy_s(command, cost, rates.copy);
  const double share = share_within(timed, windows, alone_s);
  loads.add(command.lane.index, alone_s * share);
  if (!over_pcie(command.lane.kind())) return;
  const double bytes = static_cast<double>(command.part.bytes) * rates.shared_copy * share;
  loads.add_pcie(bytes * rates.pcie_s_per_byte);
  loads.add_dram(bytes * rates.dram_s_per_byte);
}

}  // namespace

PolicyLoad policy_load(const RankTimeline& rank, const std::vector<Window>& windows, const SteadyState& steady,
                       const CostModel& cost, const BoundRates& rates) {
  Loads loads;
  for (const TimedCommand& timed : rank.commands) {
    if (!timed.done) continue;
    if (timed.command->kind == CommandKind::Copy)
      add_copy(timed, windows, cost, rates, loads);
    else if (steady.in_step[static_cast<std::size_t>(timed.command->op)])
      add_run(rank, timed, windows, cost, rates, loads);
  }
  return loads.largest();
}

}  // namespace tandem
