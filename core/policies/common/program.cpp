#include "core/policies/common/program.hpp"

#include <algorithm>

namespace tandem {

void prefetch_parameters(const View& view, Decisions& decisions, std::size_t ops) {
  const auto program = view.compute_program();
  for (std::size_t i = 0; i < std::min(ops, program.size()); ++i)
    for (ValueId read : view.graph().op(program[i]).reads) {
      if (view.graph().tensor_of(read).role != Role::Parameter || view.valid(read, Tier::Device)) continue;
      // A copy that waits for an update would hold up the lane.
      if (!view.arrived(read, Tier::HostPinned)) return;
      if (decisions.copy(read, Tier::Device) != Reply::Issued) return;
    }
}

bool prefetch_batch(const View& view, Decisions& decisions, std::int32_t step) {
  const Graph& graph = view.graph();
  bool appended = false, all = true;
  for (const OpId op : view.compute_program()) {
    if (graph.op(op).step > step) break;
    if (graph.op(op).step < step) continue;
    appended = true;
    for (ValueId read : graph.op(op).reads)
      if (graph.tensor_of(read).role == Role::Batch && !view.valid(read, Tier::Device))
        all = view.arrived(read, Tier::HostPinned) && decisions.copy(read, Tier::Device) == Reply::Issued && all;
  }
  return appended && all;
}

void BatchesAhead::fetch(const View& view, Decisions& decisions) {
  const auto program = view.compute_program();
  while (!program.empty() && next_ <= view.graph().op(program.front()).step + 1 &&
         prefetch_batch(view, decisions, next_))
    ++next_;
}

namespace {

// The widest op of the first micro-batch counts.
bool parameters_fit(const View& view) {
  const Graph& graph = view.graph();
  std::int64_t parameters = 0, widest = 0;
  for (TensorId id = 0; id < graph.tensor_count(); ++id)
    if (graph.tensor(id).role == Role::Parameter) parameters += graph.tensor(id).bytes;
  for (OpId op : view.compute_program()) {
    if (graph.op(op).step > 0 || graph.op(op).micro_batch > 0) break;
    widest = std::max(widest, view.missing_bytes(op));
  }
  return parameters + widest <= view.capacity_bytes(Tier::Device);
}

}  // namespace

Tier DeviceParameters::home(const View& view, TensorId tensor) {
  const Tensor& t = view.graph().tensor(tensor);
  if (t.role != Role::Parameter || size_of(t.type) != 2) return Tier::HostPinned;
  if (!asked_) {
    asked_ = true;
    fit_ = parameters_fit(view);
  }
  return fit_ ? Tier::Device : Tier::HostPinned;
}

}  // namespace tandem
