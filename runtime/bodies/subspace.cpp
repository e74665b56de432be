// Bodies of updates in a learned subspace but for Adam: core/transforms/subspace/subspace_ops.hpp has the method,
// core/transforms/subspace/subspace.cpp the operands. The same LibTorch calls on the CPU and on a GPU, for which
// nothing here waits.
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>

#include <cstring>
#include <string>

#include "core/formats/layout.hpp"
#include "core/scenario/schedule.hpp"
#include "runtime/bodies/common/decay_groups.hpp"
#include "runtime/bodies/common/masters.hpp"
#include "runtime/bodies/common/operands.hpp"
#include "runtime/bodies/common/subspace_fit.hpp"
#include "runtime/body_table.hpp"
#include "runtime/initial_values.hpp"
#include "runtime/optimizer/update_control.hpp"
#include "runtime/torch_types.hpp"

namespace tandem {
namespace {

using at::Tensor;

// A field of a bucket in the subspace: matrices that are compressed are the ones that are not flat.
bool is_compressed(const Field& field) { return field.shape.size() == 2; }

std::int64_t load(BodyCall& call) {
  for (std::size_t i = 0; i < call.writes.size(); ++i)
    std::memset(call.writes[i], 0, static_cast<std::size_t>(call.graph.value(call.op.writes[i].value).bytes));
  const auto& places = call.graph.tensor_of(call.op.writes[0].value);
  if (places.type != DType::I16) return 0;
  const std::string stage = places.name.substr(0, places.name.find('.') + 1);
  for (const Field& field : places.layout->fields)
    fill_projector(reinterpret_cast<std::int16_t*>(call.writes[0] + field_offset(field, DType::I16)),
                   reinterpret_cast<float*>(call.writes[1] + field.offset), field.shape[0], field.shape[1],
                   call.work.sizes.at(0), stage + field.name, call.scenario.seed);
  return 0;
}

// The dense forms of a bucket's projectors; the next two operands, if the op has them.
class Projectors {
 public:
  Projectors(Operands& operands, bool present) : type_(operands.precision()), rank_(operands.size(0)) {
    if (present) places_ = operands.read_bucket(), values_ = operands.read_bucket();
  }
  Tensor left(const Field& field) const { return dense(field.name + ".left"); }
  Tensor right(const Field& field) const { return dense(field.name + ".right"); }

 private:
  Tensor dense(const std::string& name) const {
    const Tensor places = places_[name].to(at::kLong), values = values_[name];
    Tensor projector = at::empty({places.size(0), rank_}, values.options().dtype(type_));
    expand_projector(places, values, projector);
    return projector;
  }

  at::ScalarType type_;
  std::int64_t rank_;
  Bucket places_, values_;
};

std::int64_t compress(BodyCall& call) {
  Operands operands(call);
  const Bucket gradient = operands.read_bucket();
  const Projectors projectors(operands, call.reads.size() > 1);
  const Bucket compressed = operands.write_bucket();
  compressed.zero_padding();
  for (const Field& field : compressed.layout().fields) {
    const Tensor from = gradient[field.name];
    Tensor to = compressed[field.name];
    if (!is_compressed(field)) {
      to.copy_(from.view(-1));
      continue;
    }
    const Tensor left = projectors.left(field), right = projectors.right(field);
    // By way of the smaller of both products.
    to.copy_(from.size(0) > from.size(1) ? at::mm(at::mm(left.t(), from), right)
                                         : at::mm(left.t(), at::mm(from, right)));
  }
  return 0;
}

// What a parameter that decays is multiplied by. A skipped step does not decay.
Tensor decay_factor(const BodyCall& call, const Tensor& like) {
  const OptimizerOptions& o = call.scenario.optimizer;
  const double decay = learning_rate(call.scenario, call.op.step) * o.weight_decay;
  if (call.graph.tensor_of(call.op.reads.back()).role != Role::Scalar) return at::full({}, 1 - decay, like.options());
  const Tensor scale = tensor_at(call.processor, call.reads.back(), {}, at::kDouble);
  return scale.ne(0).to(at::kFloat).mul_(-decay).add_(1);
}

std::int64_t apply(BodyCall& call) {
  Operands operands(call);
  Tensor flat[2];  // the parameter, and the rest of its masters
  for (std::size_t i = 0; i < call.writes.size(); ++i) {
    const auto& tensor = call.graph.tensor_of(call.op.writes[i].value);
    copy_bytes(call, call.reads[i], call.writes[i], tensor.bytes);
    operands.read_bucket();
    flat[i] = tensor_at(call.processor, call.writes[i], {tensor.bytes / size_of(tensor.type)}, torch_type(tensor.type));
  }
  const Bucket changes = operands.read_bucket();
  const std::size_t projectors_at = call.writes.size() + 1;
  const Projectors projectors(operands, call.reads.size() > projectors_at + 1);
  const Layout& layout = *call.graph.tensor_of(call.op.writes[0].value).layout;
  const Tensor masters = masters_of(flat[0], flat[1]);
  const Bucket bucket(layout, static_cast<std::byte*>(masters.data_ptr()), call.processor, DType::F32);
  for (std::size_t i = 0; i < layout.fields.size(); ++i) {
    const Field &field = layout.fields[i], &in_subspace = changes.layout().fields[i];
    Tensor master = bucket[field.name];
    const Tensor change = changes[field.name];
    if (call.scenario.optimizer.weight_decay > 0 && decays(call.scenario.optimizer, field))
      master.mul_(decay_factor(call, master));
    if (!is_compressed(in_subspace)) {
      master.view(-1).add_(change);
      continue;
    }
    const Tensor left = projectors.left(field), right = projectors.right(field);
    master.add_(at::mm(at::mm(left, change.to(left.scalar_type())), right.t()));
  }
  round_masters(masters, flat[0], flat[1]);
  return 0;
}

std::int64_t fit(BodyCall& call) {
  Operands operands(call);
  for (std::size_t i = 0; i < call.writes.size(); ++i)
    copy_bytes(call, call.reads[i + 2], call.writes[i], call.graph.value(call.op.writes[i].value).bytes);
  const Bucket gradient = operands.read_bucket(), places = operands.read_bucket();
  const Bucket values = operands.write_bucket(), m = operands.write_bucket(), v = operands.write_bucket();
  const double threshold = static_cast<double>(operands.size(1)) * 1e-6;
  for (const Field& field : m.layout().fields) {
    if (!is_compressed(field)) continue;
    const std::string left = field.name + ".left", right = field.name + ".right";
    SubspaceFit fit(gradient[field.name], {places[left], values[left]}, {places[right], values[right]}, field.shape[0]);
    fit.run(threshold, m[field.name], v[field.name], /*may_wait=*/call.processor == Processor::Host);
  }
  return 0;
}

constexpr BodyEntry kBodies[] = {
    {"subspace.load", load},
    {"subspace.compress", compress},
    {"subspace.apply", apply},
    {"subspace.fit", fit},
};

}  // namespace

std::span<const BodyEntry> subspace_bodies() { return kBodies; }

}  // namespace tandem
