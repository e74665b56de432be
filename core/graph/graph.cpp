#include "core/graph/graph.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace tandem {

static_assert(kEngineCount <= 16, "Op::engines has a bit for each engine");

namespace {

bool same_shape(const Tensor& a, const Tensor& b) {
  const bool same_layout = (a.layout == nullptr) == (b.layout == nullptr) &&
                           (a.layout == nullptr || a.layout->elements == b.layout->elements);
  return same_layout && a.role == b.role && a.type == b.type && a.bytes == b.bytes && a.layer == b.layer &&
         a.first_element == b.first_element && a.persistent == b.persistent && a.reported_as == b.reported_as;
}

}  // namespace

void Graph::begin_era(std::int32_t first_step) {
  CHECK(first_step > era_.first_step, "eras come one after another", first_step, era_.first_step);
  era_ = {op_count(), value_count(), first_step};
  former_.clear();
  for (TensorId id = 0; id < tensor_count(); ++id) former_.emplace(tensors_[static_cast<std::size_t>(id)].name, id);
}

void Graph::add_group(std::int32_t number, std::vector<Rank> members) {
  const auto [found, fresh] = groups_.try_emplace(number);
  if (fresh) found->second.members = std::move(members);
}

TensorId Graph::add_tensor(Tensor tensor) {
  CHECK(tensor.bytes > 0, tensor.name, tensor.bytes);
  for (auto [at, end] = former_.equal_range(tensor.name); at != end; ++at) {
    const TensorId id = at->second;
    if (!same_shape(tensors_[static_cast<std::size_t>(id)], tensor)) continue;
    tensors_[static_cast<std::size_t>(id)].whole = kNone;
    former_.erase(at);
    return id;
  }
  tensors_.push_back(std::move(tensor));
  return tensor_count() - 1;
}

WorkId Graph::add_work(Work work) {
  for (const Kernel& kernel : work.kernels)
    CHECK(kernel.flops >= 0 && kernel.bytes >= 0 && kernel.fixed_ns >= 0, work.body, kernel.flops, kernel.bytes);
  works_.push_back(std::move(work));
  return work_count() - 1;
}

std::int32_t Graph::intern(std::string_view label) {
  const auto found = label_ids_.find(label);
  if (found != label_ids_.end()) return found->second;
  const auto id = static_cast<std::int32_t>(labels_.size());
  labels_.push_back(std::string(label));
  label_ids_.emplace(label, id);
  return id;
}

ValueId Graph::new_version(TensorId id) {
  Tensor& tensor = tensors_[static_cast<std::size_t>(id)];
  Value value;
  value.tensor = id;
  value.bytes = tensor.bytes;
  value.superseded = !tensor.persistent;
  value.transient = !tensor.persistent && tensor.role != Role::Gradient;
  value.version = tensor.versions++;
  // One that does not outlive its step is so from the start, and may be forgotten by now.
  if (tensor.latest != kNone && tensor.persistent) values_[static_cast<std::size_t>(tensor.latest)].superseded = true;
  values_.push_back(value);
  tensor.latest = value_count() - 1;
  return tensor.latest;
}

Write Graph::loaded(TensorId id) {
  const ValueId before = era_.takes_over() ? tensor(id).latest : kNone;
  return {new_version(id), before};
}

OpId Graph::append(Op op) {
  const OpId id = op_count();
  CHECK(op.work != kNone && op.label != kNone && op.workspace_bytes >= 0, id, op.workspace_bytes);
  CHECK(op.may_run_on(op.engine), label(op.label), name_of(op.engine));
  for (ValueId read : op.reads) {
    CHECK(read >= 0 && read < value_count(), label(op.label), read, value_count());
    Value& value = values_[static_cast<std::size_t>(read)];
    CHECK(value.producer != kNone, label(op.label), "reads a value that no earlier op writes:", value_name(read));
    ++value.readers;
  }
  const std::int64_t lead_bytes = op.writes.empty() ? 0 : value(op.writes.front().value).bytes;
  for (const Write& write : op.writes) {
    Value& value = values_[static_cast<std::size_t>(write.value)];
    CHECK(value.producer == kNone, label(op.label), "writes a value twice:", value_name(write.value));
    value.producer = id;
    if (write.reuses != kNone)
      CHECK(this->value(write.reuses).bytes == value.bytes, label(op.label), "reuses storage of another size");
  }
  if (op.divisible) {
    // Parts are cut at multiples of cut_bytes of the lead: every operand's range must then be a whole number of bytes.
    // Policies cut at pages. What another host's workers may load the scheduler cuts, between items of any size.
    CHECK(op.may_run_on(Engine::RemoteLoader) || kPageBytes % op.cut_bytes == 0, label(op.label), op.cut_bytes);
    const auto divides = [&](ValueId v) {
      return value(v).bytes < 64 || static_cast<Int128>(op.cut_bytes) * value(v).bytes % lead_bytes == 0;
    };
    CHECK(std::all_of(op.reads.begin(), op.reads.end(), divides), label(op.label), "an operand does not divide");
  }
  ops_.push_back(std::move(op));
  return id;
}

std::string Graph::op_name(OpId id) const {
  const Op& o = op(id);
  std::string name;
  if (o.step != kNone)
    name = "step" + std::to_string(first_step_ + o.step) + "/mb" + std::to_string(o.micro_batch) + "/";
  return name + std::string(label(o.label));
}

std::string Graph::value_name(ValueId id) const { return tensor_of(id).name + "@" + std::to_string(value(id).version); }

}  // namespace tandem
