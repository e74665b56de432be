#include "core/step/batch.hpp"

#include <utility>

namespace tandem {

void BatchPart::add(Graph& graph) {
  const BatchSpec& batch = context_.plan().batch;
  if (batch.load.body.empty()) return;
  add_works(graph);
  for (const TensorSpec& tensor : batch.tensors)
    tensors_.push_back(
        add_plain_tensor(graph, batch.name + "." + prefix_ + tensor.name, Role::Batch, tensor.type, tensor.bytes));
  values_.assign(tensors_.size(), kNone);
}

void BatchPart::add_works(Graph& graph) {
  Work load = context_.plan().batch.load;
  load.sizes.push_back(0);
  work_ = graph.add_work(load);
  label_ = graph.intern(context_.plan().batch.name + ".load");
  if (context_.options.validation.every == 0) return;
  load.sizes.back() = 1;
  held_out_work_ = graph.add_work(std::move(load));
  held_out_label_ = graph.intern("validation.load");
}

void BatchPart::append(Graph& graph, std::int32_t label, WorkId work) {
  if (work == kNone) return;
  Op op = context_.loader_op(label, work, Phase::Load, 0);
  op.layer = kNone;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    values_[i] = graph.new_version(tensors_[i]);
    op.writes.push_back({values_[i], kNone});
  }
  graph.append(std::move(op));
}

}  // namespace tandem
