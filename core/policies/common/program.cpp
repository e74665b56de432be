#include "core/policies/common/program.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/policies/common/first_step.hpp"
#include "core/scenario/capacity.hpp"

namespace tandem {

bool step_goes_on(const View& view, std::int32_t updated_step) {
  const auto program = view.compute_program();
  if (program.empty()) return false;
  const Op& next = view.graph().op(program.front());
  return next.step <= updated_step && next.phase != Phase::Evaluate;
}

bool goes_between_stages(const View& view, OpId op) { return is_transfer(view.graph().work_of(view.graph().op(op))); }

void prefetch_parameters(const View& view, Decisions& decisions, std::size_t ops) {
  const auto program = view.compute_program();
  for (std::size_t i = 0; i < std::min(ops, program.size()); ++i) {
    const Op& op = view.graph().op(program[i]);
    if (operand_tier(op.engine) != Tier::Device) continue;
    for (ValueId read : op.reads) {
      if (view.graph().tensor_of(read).role != Role::Parameter || view.valid(read, Tier::Device)) continue;
      // A copy that waits for an update would hold up the lane.
      if (!view.arrived(read, Tier::HostPinned)) return;
      if (decisions.copy(read, Tier::Device) != Reply::Issued) return;
    }
  }
}

void BatchesAhead::follow(const Graph& graph) {
  seen_ = std::max(seen_, graph.era().first_op);
  next_ = std::max(next_, graph.era().first_step);
  for (; seen_ < graph.op_count(); ++seen_) {
    const Op& op = graph.op(seen_);
    if (op.step == kNone || !in_compute_program(op.phase)) continue;
    const bool on_device = operand_tier(op.engine) == Tier::Device;
    last_step_ = std::max(last_step_, op.step);
    for (ValueId read : op.reads)
      if (on_device && graph.tensor_of(read).role == Role::Batch) reads_.push_back({seen_, read});
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

// What of them is on the device at once if all are.
std::int64_t parameter_bytes(const Graph& graph) {
  std::int64_t bytes = 0;
  for (TensorId id = 0; id < graph.tensor_count(); ++id)
    if (const Tensor& t = graph.tensor(id); t.role == Role::Parameter && !t.on_host)
      bytes += t.whole == kNone ? t.bytes : graph.tensor(t.whole).bytes;
  return bytes;
}

// 16 bits wide, or codes of fewer.
bool is_narrow(const Tensor& parameter) { return size_of(parameter.type) <= 2; }

// The widest op of the first micro-batch counts.
bool parameters_fit(const View& view) {
  const Graph& graph = view.graph();
  std::int64_t widest = 0;
  for (OpId op : view.compute_program()) {
    if (!graph.in_first_step(graph.op(op)) || graph.op(op).micro_batch > 0) break;
    widest = std::max(widest, view.missing_bytes(op));
  }
  return parameter_bytes(graph) + widest <= view.capacity_bytes(Tier::Device);
}

}  // namespace

Tier DeviceParameters::home(const View& view, TensorId tensor) {
  CHECK(tensor >= 0 && tensor < view.graph().tensor_count(), tensor, view.graph().tensor_count());
  const Tensor& t = view.graph().tensor(tensor);
  if (t.role != Role::Parameter || !is_narrow(t) || t.on_host) return Tier::HostPinned;
  if (!asked_) {
    asked_ = true;
    fit_ = parameters_fit(view);
    parts_on_host_ = updates_read_parameters(view.graph());
  }
  return fit_ && (t.whole == kNone || !parts_on_host_) ? Tier::Device : Tier::HostPinned;
}

bool updates_read_parameters(const Graph& graph) {
  for (OpId id = graph.era().first_op; id < graph.op_count(); ++id)
    if (const Op& op = graph.op(id); op.phase == Phase::OptimizerStep)
      return std::any_of(op.reads.begin(), op.reads.end(),
                         [&](ValueId read) { return graph.tensor_of(read).role == Role::Parameter; });
  return false;
}

bool parameters_fit_on_device(const Scenario& scenario, const std::optional<BlockActivations>& activations) {
  const Graph graph = first_step(scenario, activations);
  for (TensorId id = 0; id < graph.tensor_count(); ++id)
    if (const Tensor& t = graph.tensor(id); t.role == Role::Parameter && !is_narrow(t)) return false;
  std::int64_t widest = 0;
  for (OpId id = graph.era().first_op; id < graph.op_count(); ++id) {
    const Op& op = graph.op(id);
    if (op.micro_batch > 0 || op.phase == Phase::Load || op.phase == Phase::OptimizerStep) continue;
    std::int64_t bytes = op.workspace_bytes;
    for (ValueId read : op.reads) bytes += graph.value(read).bytes;
    for (const Write& write : op.writes)
      if (write.reuses == kNone) bytes += graph.value(write.value).bytes;
    widest = std::max(widest, bytes);
  }
  return parameter_bytes(graph) + widest <= tier_capacity_bytes(scenario, Tier::Device);
}

void drop_gathered(const View& view, Decisions& decisions, OpId op) {
  if (view.graph().op(op).engine != Engine::Collective) return;
  for (ValueId read : view.graph().op(op).reads)
    if (view.graph().tensor_of(read).whole != kNone) decisions.release(read, Tier::Device);
}

}  // namespace tandem
