#include "core/policies/g10/inactive_periods.hpp"

#include <algorithm>
#include <map>

#include "core/base/check.hpp"

namespace tandem {
namespace {

// The places in the step's order where a value is used.
struct Uses {
  std::vector<std::int32_t> at;
  bool written = false;   // by the first of them
  bool replaced = false;  // by the last of them, in place
};

std::map<ValueId, Uses> uses_of(const Graph& graph, const std::vector<OpId>& ops) {
  std::map<ValueId, Uses> uses;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const Op& op = graph.op(ops[i]);
    const auto place = static_cast<std::int32_t>(i);
    for (ValueId read : op.reads) {
      Uses& its = uses[read];
      its.replaced = false;
      if (its.at.empty() || its.at.back() != place) its.at.push_back(place);
    }
    for (const Write& write : op.writes) {
      uses[write.value] = {.at = {place}, .written = true};
      if (const auto old = uses.find(write.reuses); old != uses.end())
        old->second.replaced = old->second.at.back() == place;
    }
  }
  return uses;
}

// The uses of what a tensor holds when a step begins, and of what it holds when it ends.
struct Ends {
  std::int32_t first_use = kNone, last_use = kNone;
};

class Analysis {
 public:
  Analysis(const Graph& graph, StepUse& out) : graph_(graph), out_(out) {}

  void add(ValueId value, const Uses& uses) {
    const Tensor& tensor = graph_.tensor_of(value);
    const std::int64_t bytes = graph_.value(value).bytes;
    for (std::size_t i = 1; i < uses.at.size(); ++i) add_period(value, uses.at[i - 1], uses.at[i]);
    std::int32_t from = uses.at.front(), to = uses.at.back() - uses.replaced;
    if (tensor.persistent && !uses.written) ends_[graph_.value(value).tensor].first_use = from, from = 0;
    if (tensor.persistent && !uses.replaced && is_last(value)) {
      ends_[graph_.value(value).tensor].last_use = to;
      to = static_cast<std::int32_t>(out_.live_bytes.size()) - 1;
    }
    CHECK(from >= 0 && to < std::ssize(out_.live_bytes), graph_.value_name(value), from, to, out_.live_bytes.size());
    for (std::int32_t i = from; i <= to; ++i) out_.live_bytes[static_cast<std::size_t>(i)] += bytes;
  }

  void note_last_versions(const std::map<ValueId, Uses>& uses) {
    for (const auto& [value, its] : uses) {
      const auto last = last_version_.try_emplace(graph_.value(value).tensor, value).first;
      if (graph_.value(value).version > graph_.value(last->second).version) last->second = value;
    }
  }

  void add_periods_across_steps() {
    const auto length = static_cast<std::int32_t>(out_.live_bytes.size());
    for (const auto& [tensor, ends] : ends_)
      if (ends.first_use != kNone && ends.last_use != kNone)
        add_period(last_version_.at(tensor), ends.last_use, ends.first_use + length);
  }

 private:
  bool is_last(ValueId value) const { return last_version_.at(graph_.value(value).tensor) == value; }

  void add_period(ValueId value, std::int32_t after, std::int32_t before) {
    CHECK(after >= 0 && before > after, graph_.value_name(value), after, before);
    const TensorId tensor = graph_.value(value).tensor;
    const std::int64_t bytes = graph_.value(value).bytes;
    if (before - after > 1 && bytes >= kPageBytes)
      out_.periods.push_back({tensor, bytes, graph_.tensor(tensor).persistent, after, before});
  }

  const Graph& graph_;
  StepUse& out_;
  std::map<TensorId, ValueId> last_version_;
  std::map<TensorId, Ends> ends_;  // of persistent tensors
};

}  // namespace

std::vector<OpId> step_ops(const Graph& graph, std::int32_t step, OpId first) {
  std::vector<OpId> ops;
  for (OpId id = first; id < graph.op_count() && graph.op(id).step <= step; ++id)
    if (const Op& op = graph.op(id); op.step == step && op.phase != Phase::Load && op.phase != Phase::Save)
      ops.push_back(id);
  return ops;
}

StepUse use_of_step(const Graph& graph, const CostModel& estimate, const std::vector<OpId>& ops) {
  StepUse out;
  for (OpId id : ops) {
    const Op& op = graph.op(id);
    const Engine engine = op.may_run_on(Engine::Compute) ? Engine::Compute : op.engine;
    out.run_ns.push_back(estimate.run_ns(graph, op.work, engine));
    out.live_bytes.push_back(op.workspace_bytes);
  }
  const std::map<ValueId, Uses> uses = uses_of(graph, ops);
  Analysis analysis(graph, out);
  analysis.note_last_versions(uses);
  for (const auto& [value, its] : uses) analysis.add(value, its);
  analysis.add_periods_across_steps();
  for (const InactivePeriod& period : out.periods) {
    const std::size_t inside = static_cast<std::size_t>(period.after + 1) % ops.size();
    CHECK(out.live_bytes[inside] >= period.bytes, graph.tensor(period.tensor).name, "is not counted while unused",
          inside);
  }
  return out;
}

}  // namespace tandem
