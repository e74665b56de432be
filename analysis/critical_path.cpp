#include "analysis/critical_path.hpp"

#include <algorithm>
#include <vector>

#include "analysis/share_classes.hpp"
#include "core/machine/lanes.hpp"

namespace tandem {
namespace {

struct Ready {  // the earliest moment at which all of a value can be on each side, in seconds
  double device = 0, host = 0;
  double earliest() const { return std::min(device, host); }
  double at(bool on_device) const { return on_device ? device : host; }
};

class Path {
 public:
  Path(const Graph& graph, const CostModel& cost, const BoundRates& rates)
      : graph_(graph), cost_(cost), rates_(rates), ready_(static_cast<std::size_t>(graph.value_count())) {}

  double growth(const SteadyState& steady) {
    double before = 0, end = 0;
    for (OpId id = 0; id < graph_.op_count(); ++id) {
      if (!steady.in_step[static_cast<std::size_t>(id)]) {
        take_aside(graph_.op(id));
        continue;
      }
      double& until = steady.counts(graph_, id) ? end : before;
      until = std::max(until, take(graph_.op(id)));
    }
    return std::max(0.0, end - before);
  }

 private:
  void take_aside(const Op& op) {
    double begin = 0;
    for (ValueId read : op.reads) begin = std::max(begin, ready(read).earliest());
    for (const Write& write : op.writes) ready(write.value) = {begin, begin};
  }

  // Returns the earliest end of the op.
  double take(const Op& op) {
    const Side side = side_of(op);
    if (side == Side::Either) return take_either(op);
    const bool on_device = side == Side::Device;
    const double run = fastest_s(op, on_device);
    double begin = 0, copies_in = 0;
    for (ValueId read : op.reads) {
      begin = std::max(begin, op.divisible ? ready(read).earliest() : ready(read).at(on_device));
      if (op.divisible) copies_in = std::max(copies_in, ready(read).at(on_device) - ready(read).earliest());
    }
    // A divisible op's parts follow the parts of the copies that bring them; the slowest of the three stages counts.
    const double end = begin + std::max(run, copies_in);
    for (const Write& write : op.writes) {
      const double copy = copy_s(write.value, on_device);
      const double across = op.divisible ? std::max(end, begin + copy) : end + copy;
      ready(write.value) = on_device ? Ready{end, across} : Ready{across, end};
    }
    return end;
  }

  // Where an op may run on either side or be shared, all copies might be avoided.
  double take_either(const Op& op) {
    double begin = 0;
    for (ValueId read : op.reads) begin = std::max(begin, ready(read).earliest());
    const double device = fastest_s(op, true), host = fastest_s(op, false);
    const double shared = device > 0 && host > 0 ? 1 / (1 / device + 1 / host) : 0;
    const double end = begin + (op.divisible ? shared : std::min(device, host));
    for (const Write& write : op.writes) ready(write.value) = {end, end};
    return end;
  }

  double fastest_s(const Op& op, bool on_device) const {
    double fastest = -1;
    int engines = 0;
    for (int i = 0; i < kEngineCount; ++i) {
      const Engine engine = static_cast<Engine>(i);
      if (!op.may_run_on(engine) || (operand_tier(engine) == Tier::Device) != on_device) continue;
      const double s = run_s(graph_, op, engine, cost_, rates_);
      fastest = fastest < 0 ? s : std::min(fastest, s);
      engines += claims_cores(engine) ? lane_count(cost_.profile(), engine) : 1;
    }
    return op.divisible && engines > 1 ? fastest / engines : std::max(0.0, fastest);
  }

  // Small copies have lanes of their own, whose latency may differ: they count as free.
  double copy_s(ValueId value, bool from_device) const {
    const std::int64_t bytes = graph_.value(value).bytes;
    if (bytes <= cost_.profile().small_copy_bytes) return 0;
    const auto amount = static_cast<double>(bytes);
    return from_device ? rates_.d2h_latency_s + amount * rates_.d2h_s_per_byte
                       : rates_.h2d_latency_s + amount * rates_.h2d_s_per_byte;
  }

  Ready& ready(ValueId value) { return ready_[static_cast<std::size_t>(value)]; }

  const Graph& graph_;
  const CostModel& cost_;
  const BoundRates& rates_;
  std::vector<Ready> ready_;  // by value
};

}  // namespace

double critical_path_s(const Graph& graph, const SteadyState& steady, const CostModel& cost, const BoundRates& rates) {
  return Path(graph, cost, rates).growth(steady);
}

}  // namespace tandem
