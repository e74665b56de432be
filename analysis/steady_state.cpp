#include "analysis/steady_state.hpp"

#include <algorithm>

namespace tandem {
namespace {

bool is_aside(const Op& op) { return op.step == kNone || op.phase == Phase::Evaluate || op.phase == Phase::Save; }

// A batch belongs to what reads it: training, or an evaluation.
std::vector<bool> ops_in_steps(const Graph& graph) {
  std::vector<bool> in_step(static_cast<std::size_t>(graph.op_count()), false);
  for (OpId id = 0; id < graph.op_count(); ++id) {
    const Op& op = graph.op(id);
    if (is_aside(op)) continue;
    if (op.phase != Phase::Load) in_step[static_cast<std::size_t>(id)] = true;
    for (ValueId read : op.reads) {
      const OpId producer = graph.value(read).producer;
      if (producer != kNone && !is_aside(graph.op(producer))) in_step[static_cast<std::size_t>(producer)] = true;
    }
  }
  return in_step;
}

// A value that was there before the first step, and that a step replaces.
bool is_replaced_start(const Graph& graph, ValueId id) {
  const OpId made = graph.value(id).producer, latest = graph.value(graph.tensor_of(id).latest).producer;
  return made != kNone && graph.op(made).step == kNone && latest != kNone && graph.op(latest).step != kNone;
}

}  // namespace

SteadyState steady_state(const Graph& graph) {
  SteadyState steady;
  steady.in_step = ops_in_steps(graph);
  std::int32_t last = kNone, starting = 0;
  for (OpId id = 0; id < graph.op_count(); ++id) {
    if (!steady.in_step[static_cast<std::size_t>(id)]) continue;
    const Op& op = graph.op(id);
    last = std::max(last, op.step);
    if (std::any_of(op.reads.begin(), op.reads.end(), [&](ValueId read) { return is_replaced_start(graph, read); }))
      starting = std::max(starting, op.step);
  }
  if (last == kNone) return steady;
  steady.first = std::min(starting + 1, last);
  steady.steps = last - steady.first + 1;
  return steady;
}

}  // namespace tandem
