#include "core/policies/common/program.hpp"

#include <algorithm>

#include "core/base/check.hpp"

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

void BatchesAhead::follow(const Graph& graph) {
  for (; seen_ < graph.op_count(); ++seen_) {
    const Op& op = graph.op(seen_);
    if (op.step == kNone || !in_compute_program(op.phase)) continue;
    last_step_ = std::max(last_step_, op.step);
    for (ValueId read : op.reads)
      if (graph.tensor_of(read).role == Role::Batch) reads_.push_back({seen_, read});
  }
}

// True if all of it is on its way.
bool BatchesAhead::fetch_step(const View& view, Decisions& decisions) {
  const Graph& graph = view.graph();
  if (next_ > last_step_ || view.graph().op(view.compute_program().front()).step > next_) return false;
  while (!reads_.empty() && graph.op(reads_.front().op).step < next_) reads_.pop_front();
  bool all = true;
  for (const Read& read : reads_) {
    if (graph.op(read.op).step > next_) break;
    if (!view.issued(read.op) && !view.valid(read.value, Tier::Device))
      all = view.arrived(read.value, Tier::HostPinned) && decisions.copy(read.value, Tier::Device) == Reply::Issued &&
            all;
  }
  return all;
}

void BatchesAhead::fetch(const View& view, Decisions& decisions) {
  follow(view.graph());
  const auto program = view.compute_program();
  while (!program.empty() && next_ <= view.graph().op(program.front()).step + 1 && fetch_step(view, decisions)) ++next_;
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
  CHECK(tensor >= 0 && tensor < view.graph().tensor_count(), tensor, view.graph().tensor_count());
  const Tensor& t = view.graph().tensor(tensor);
  if (t.role != Role::Parameter || size_of(t.type) != 2) return Tier::HostPinned;
  if (!asked_) {
    asked_ = true;
    fit_ = parameters_fit(view);
  }
  return fit_ ? Tier::Device : Tier::HostPinned;
}

}  // namespace tandem
