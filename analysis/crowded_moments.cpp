#include "analysis/crowded_moments.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "analysis/tier_capacity.hpp"
#include "core/scenario/capacity.hpp"

namespace tandem {
namespace {

using StepOps = std::vector<OpId>;  // in graph order

class CutFinder {
 public:
  CutFinder(const Graph& graph, const Sides& sides, std::int64_t small_bytes)
      : graph_(graph),
        sides_(sides),
        small_bytes_(small_bytes),
        counted_(static_cast<std::size_t>(graph.value_count())),
        used_before_(static_cast<std::size_t>(graph.value_count()), 0),
        mark_(static_cast<std::size_t>(graph.op_count()), Mark::NotBefore) {}

  // Values that were counted for earlier moments may count once more.
  void count_anew() { counted_.assign(counted_.size(), false); }

  void find(const StepOps& ops, std::vector<CrowdedMoment>& moments) {
    std::map<std::int32_t, OpId> first_backward;  // by micro-batch
    for (OpId id : ops)
      if (graph_.op(id).phase == Phase::Backward) first_backward.try_emplace(graph_.op(id).micro_batch, id);
    if (first_backward.empty()) find_decoding(ops, moments);
    // The last micro-batch first: values shared by several, such as parameters, then count with the states.
    for (auto it = first_backward.rbegin(); it != first_backward.rend(); ++it) {
      mark_ancestors(it->second);
      const std::size_t before = marked_.size();
      const OpId last = last_before(ops);
      moments.push_back(moment_at(it->second, ops));
      moments.back().last_of_step = it == first_backward.rbegin();
      if (moments.back().last_of_step) add_states(ops, moments.back());
      unmark();
      moments.back().held_bytes = held_at(it->second);
      // No other op's results come between them.
      if (last != kNone && ancestors(last) + 1 == before)
        moments.back().held_bytes =
            std::max(moments.back().held_bytes, static_cast<double>(graph_.op(last).workspace_bytes));
    }
  }

 private:
  enum class Mark : std::uint8_t { NotBefore, Before, BeforeInStep };

  // What has finished when `moment` starts: its ancestors. Those of earlier steps are marked and not followed further.
  void mark_ancestors(OpId moment) {
    const std::int32_t step = graph_.op(moment).step;
    std::vector<OpId> open{moment};
    while (!open.empty()) {
      const OpId at = open.back();
      open.pop_back();
      for (ValueId read : graph_.op(at).reads) {
        const OpId producer = graph_.value(read).producer;
        Mark& mark = mark_[static_cast<std::size_t>(producer)];
        if (mark != Mark::NotBefore) continue;
        const bool in_step = graph_.op(producer).step == step;
        mark = in_step ? Mark::BeforeInStep : Mark::Before;
        marked_.push_back(producer);
        if (in_step) open.push_back(producer);
      }
    }
  }

  void unmark() {
    for (OpId id : marked_) mark_[static_cast<std::size_t>(id)] = Mark::NotBefore;
    marked_.clear();
  }

  std::size_t ancestors(OpId op) {
    mark_ancestors(op);
    const std::size_t count = marked_.size();
    unmark();
    return count;
  }

  // The last marked op of the step on the device.
  OpId last_before(const StepOps& ops) const {
    const auto found = std::find_if(ops.rbegin(), ops.rend(),
                                    [&](OpId id) { return mark(id) == Mark::BeforeInStep && device_op(id); });
    return found == ops.rend() ? kNone : *found;
  }

  // What an op holds of the device while it runs, beside what it reads.
  double held_at(OpId id) const {
    if (!device_op(id)) return 0;
    std::int64_t held = graph_.op(id).workspace_bytes;
    for (const Write& write : graph_.op(id).writes)
      if (write.reuses == kNone) held += graph_.value(write.value).bytes;
    return static_cast<double>(held);
  }

  Mark mark(OpId id) const { return mark_[static_cast<std::size_t>(id)]; }
  bool device_op(OpId id) const { return sides_.of_op[static_cast<std::size_t>(id)] == Side::Device; }

  CrowdedMoment moment_at(OpId first, const StepOps& ops) {
    ++cut_;
    for (OpId id : ops)
      if (mark(id) == Mark::BeforeInStep && device_op(id))
        for (ValueId read : graph_.op(id).reads) used_before_[static_cast<std::size_t>(read)] = cut_;
    CrowdedMoment moment;
    for (OpId id : ops) {
      const Op& op = graph_.op(id);
      const bool after = id >= first && mark(id) == Mark::NotBefore && op.micro_batch == graph_.op(first).micro_batch;
      if (!after || !device_op(id) || (op.phase != Phase::Backward && op.phase != Phase::Recompute)) continue;
      for (ValueId read : op.reads) count(read, moment);
    }
    return moment;
  }

  void count(ValueId id, CrowdedMoment& moment) {
    const Value& value = graph_.value(id);
    if (value.bytes <= small_bytes_ || counted_[static_cast<std::size_t>(id)]) return;
    const bool made = device_op(value.producer) && mark(value.producer) != Mark::NotBefore;
    if (!made && used_before_[static_cast<std::size_t>(id)] != cut_) return;
    counted_[static_cast<std::size_t>(id)] = true;
    moment.live_bytes += static_cast<double>(value.bytes);
    const Readers& readers = sides_.readers[static_cast<std::size_t>(id)];
    if (made && !readers.host && readers.either == kNone) moment.made_bytes += static_cast<double>(value.bytes);
  }

  // A decoding step begins when the step before has given its token, with all of its reads done: what both read is
  // needed again, and no copy after that moment is another step's.
  void find_decoding(const StepOps& ops, std::vector<CrowdedMoment>& moments) {
    const auto gives = std::find_if(ops.rbegin(), ops.rend(), [&](OpId id) { return graph_.op(id).grows; });
    if (gives == ops.rend()) return;
    mark_ancestors(*gives);
    const std::int32_t before = cut_++;
    CrowdedMoment moment;
    moment.rewritten = false;
    for (OpId id : ops) {
      if (!device_op(id) || (id != *gives && mark(id) != Mark::BeforeInStep)) continue;
      for (ValueId read : graph_.op(id).reads) {
        std::int32_t& used = used_before_[static_cast<std::size_t>(read)];
        const std::int64_t bytes = graph_.value(read).bytes;
        if (used == before && before > 0 && bytes > small_bytes_) moment.live_bytes += static_cast<double>(bytes);
        used = cut_;
      }
    }
    unmark();
    moments.push_back(moment);
  }

  // Optimizer states that exist at the moment and that this step's optimizer ops will read.
  void add_states(const StepOps& ops, CrowdedMoment& moment) {
    for (OpId id : ops) {
      if (sides_.of_op[static_cast<std::size_t>(id)] != Side::Either || mark(id) != Mark::NotBefore) continue;
      const Op& op = graph_.op(id);
      for (std::size_t slot = 0; slot < op.reads.size(); ++slot) {
        const Value& value = graph_.value(op.reads[slot]);
        const bool state = graph_.tensor(value.tensor).role == Role::OptimizerState;
        if (!state || mark(value.producer) == Mark::NotBefore || value.bytes <= small_bytes_) continue;
        moment.states.push_back(
            {sides_.class_of_op[static_cast<std::size_t>(id)], static_cast<std::int32_t>(slot), value.bytes});
      }
    }
  }

  const Graph& graph_;
  const Sides& sides_;
  std::int64_t small_bytes_;
  std::vector<bool> counted_;              // by value
  std::vector<std::int32_t> used_before_;  // by value: the latest moment before which the device used it
  std::int32_t cut_ = 0;
  std::vector<Mark> mark_;  // by op
  std::vector<OpId> marked_;
};

}  // namespace

std::vector<CrowdedMoment> crowded_moments(const Graph& graph, const Sides& sides, const SteadyState& steady,
                                           std::int64_t small_bytes) {
  std::map<std::int32_t, StepOps> steps;
  for (OpId id = 0; id < graph.op_count(); ++id)
    if (steady.in_step[static_cast<std::size_t>(id)]) steps[graph.op(id).step].push_back(id);
  CutFinder finder(graph, sides, small_bytes);
  std::vector<CrowdedMoment> moments, earlier;
  for (const auto& [step, ops] : steps) {
    if (step == steady.first) finder.count_anew();
    finder.find(ops, step < steady.first ? earlier : moments);
  }
  return moments;
}

double most_at_a_moment(const Graph& graph, const Sides& sides, const SteadyState& steady) {
  struct OfStep {
    double held = 0, states = 0;                       // by one op; in all
    std::map<std::int32_t, double> read_by_backwards;  // by micro-batch
  };
  std::map<std::int32_t, OfStep> steps;
  std::vector<const double*> counted(static_cast<std::size_t>(graph.value_count()), nullptr);  // where it was last
  for (OpId id = 0; id < graph.op_count(); ++id) {
    const Op& op = graph.op(id);
    if (!steady.in_step[static_cast<std::size_t>(id)]) continue;
    if (op.grows) return std::numeric_limits<double>::infinity();
    OfStep& step = steps[op.step];
    std::int64_t held = op.workspace_bytes;
    for (const Write& write : op.writes) held += graph.value(write.value).bytes;
    step.held = std::max(step.held, static_cast<double>(held));
    const bool updates = sides.of_op[static_cast<std::size_t>(id)] == Side::Either;
    if (!updates && op.phase != Phase::Backward && op.phase != Phase::Recompute) continue;
    double& bytes = updates ? step.states : step.read_by_backwards[op.micro_batch];
    for (ValueId read : op.reads)
      if (std::exchange(counted[static_cast<std::size_t>(read)], &bytes) != &bytes)
        bytes += static_cast<double>(graph.value(read).bytes);
  }
  double most = 0;
  for (const auto& [number, step] : steps)
    for (const auto& [micro_batch, read] : step.read_by_backwards)
      most = std::max(most, step.held + step.states + read);
  return most;
}

Capacity capacity_of(const Scenario& scenario, std::int64_t ranks) {
  const auto of = [&](Tier tier) { return static_cast<double>(tier_capacity_bytes(scenario, tier)); };
  return {of(Tier::Device), (of(Tier::HostPinned) + of(Tier::HostPageable)) / static_cast<double>(ranks)};
}

}  // namespace tandem
