#include "core/step/batch.hpp"

#include <algorithm>
#include <utility>

namespace tandem {

void BatchPart::add(Graph& graph) {
  const BatchSpec& batch = context_.plan().batch;
  if (batch.load.body.empty()) return;
  InputSpec load{"load", batch.load, {}, {}};
  for (std::size_t i = 0; i < batch.tensors.size(); ++i) {
    const auto makes = [&](const InputSpec& input) {
      return std::count(input.writes.begin(), input.writes.end(), static_cast<std::int32_t>(i)) > 0;
    };
    if (std::none_of(batch.inputs.begin(), batch.inputs.end(), makes))
      load.writes.push_back(static_cast<std::int32_t>(i));
  }
  for (const InputSpec& input : batch.inputs) add_filling(graph, input);
  // Behind what reads files: by then it is known which of them could be read.
  for (const InputSpec& input : batch.inputs)
    if (input.reads.empty()) load.reads.push_back(input.writes.front());
  if (!load.writes.empty()) add_filling(graph, std::move(load));
  for (const TensorSpec& tensor : batch.tensors)
    tensors_.push_back(add_plain_tensor(graph, batch.name + "." + prefix_ + tensor.name, Role::Batch, tensor.type,
                                        tensor.bytes, tensor.persistent));
  values_.assign(tensors_.size(), kNone);
}

void BatchPart::add_filling(Graph& graph, InputSpec spec) {
  Filling filling{std::move(spec)};
  const bool holds_out = context_.options.validation.every > 0;
  for (std::size_t held_out = 0; held_out < (holds_out ? 2 : 1); ++held_out) {
    Work work = filling.spec.work;
    work.sizes.push_back(static_cast<std::int64_t>(held_out));
    filling.works[held_out] = graph.add_work(std::move(work));
    filling.labels[held_out] =
        graph.intern((held_out == 1 ? "validation" : context_.plan().batch.name) + "." + filling.spec.name);
  }
  fillings_.push_back(std::move(filling));
}

Op BatchPart::op_of(const Filling& filling, bool held_out) const {
  using Where = InputSpec::Where;
  const InputSpec& spec = filling.spec;
  Op op = context_.loader_op(filling.labels[held_out], filling.works[held_out], Phase::Load, 0);
  op.layer = kNone;
  op.divisible = spec.cut_bytes > 0;
  if (spec.cut_bytes > 0) op.cut_bytes = spec.cut_bytes;
  if (spec.where == Where::AnyWorkers) op.engines |= engine_bit(Engine::RemoteLoader);
  const bool chosen = spec.where == Where::WorkersOrDevice && context_.inputs_on_device;
  if (spec.where != Where::Device && spec.where != Where::DeviceOrWorkers && !chosen) return op;
  op.phase = held_out ? Phase::Evaluate : Phase::Forward;
  op.engine = Engine::Compute;
  op.engines = engine_bit(Engine::Compute);
  if (spec.where != Where::Device) op.engines |= engine_bit(Engine::Loader);
  op.workspace_bytes = spec.workspace_bytes;
  return op;
}

void BatchPart::load(Graph& graph, bool held_out) {
  for (const Filling& filling : fillings_) {
    Op op = op_of(filling, held_out);
    for (const std::int32_t read : filling.spec.reads) op.reads.push_back(value(static_cast<std::size_t>(read)));
    for (const std::int32_t write : filling.spec.writes) {
      ValueId& made = values_[static_cast<std::size_t>(write)];
      made = graph.new_version(tensors_[static_cast<std::size_t>(write)]);
      op.writes.push_back({made, kNone});
    }
    graph.append(std::move(op));
  }
}

}  // namespace tandem
