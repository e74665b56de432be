#include "runtime/primitives/common/run_pass.hpp"

#include <c10/core/InferenceMode.h>

#include <utility>

#include "core/base/errors.hpp"
#include "runtime/bodies/common/operands.hpp"
#include "runtime/body_table.hpp"
#include "runtime/torch_types.hpp"

namespace tandem {
namespace {

std::size_t place(std::int32_t id) { return static_cast<std::size_t>(id); }

class Walk {
 public:
  explicit Walk(const PassRun& run) : run_(run), pass_(run.pass), scope_(*WorkspaceScope::current()) {
    weights_ = bucket(OperandKind::Weights, run.bucket);
    frozen_ = bucket(OperandKind::FrozenWeights, run.frozen);
    weight_gradient_ = bucket(OperandKind::WeightGradient, run.bucket);
  }
  std::int64_t run() {
    bool begun = false;
    std::int64_t result = 0;
    for (const PassCall& call : pass_.calls) {
      scope_.serve_from(call.scratch_offset, call.scratch_bytes);
      if (call.direction == Direction::Backward && call.wanted.weights != 0 && !call.wanted.accumulates &&
          !std::exchange(begun, true))
        weight_gradient_.zero_padding();
      Arguments arguments = arguments_of(call);
      const PrimitiveBodyEntry* body = find_primitive_body(call.call->what->name);
      if (body == nullptr) throw DeviceError("no body performs " + std::string(call.call->what->name));
      const auto perform = call.direction == Direction::Forward ? body->forward : body->backward;
      if (perform == nullptr) throw DeviceError(std::string(body->name) + " has no backward");
      try {
        perform(arguments);
      } catch (const DeviceError& error) {
        throw DeviceError(call.call->name + " (" + std::string(body->name) + "): " + error.what());
      }
      const Primitive& primitive = call.call->what->primitive;
      if (call.direction == Direction::Forward && primitive.gives_result())
        result = give_result(run_.processor, run_.late_result, arguments.out[0]);
    }
    return result;
  }

 private:
  Bucket bucket(OperandKind kind, const Layout* layout) const {
    for (std::size_t i = 0; i < pass_.operands.size(); ++i)
      if (pass_.operands[i].kind == kind) return {*layout, run_.operands[i], run_.processor, pass_.module->type};
    return {};
  }
  at::Tensor weight(std::int32_t id) const {
    const Bucket& of = pass_.module->weights[place(id)].trained ? weights_ : frozen_;
    return of.is_there() ? of.field(place(field_of(*pass_.module, place(id)))) : at::Tensor();
  }
  std::byte* address(const Storage& storage) const {
    if (storage.operand != kNone) return run_.operands[place(storage.operand)];
    return static_cast<std::byte*>(scope_.at(storage.offset, storage.bytes));
  }
  at::Tensor tensor(std::int32_t storage, const Shape& shape) const {
    if (storage == kNone) return {};
    return tensor_at(run_.processor, address(pass_.storages[place(storage)]),
                     at::IntArrayRef(shape.dims.data(), shape.dims.size()), torch_type(shape.type));
  }
  Arguments arguments_of(const PassCall& c) const {
    const CallShapes& shapes = c.call->shapes;
    Arguments a{*c.call, c.wanted, {}, {}, {}, {}, {}, {}, {}, pass_.micro_batches, {}, run_.random};
    for (std::size_t i = 0; i < c.in.size(); ++i) a.in.push_back(tensor(c.in[i], shapes.in[i]));
    for (std::size_t i = 0; i < c.out.size(); ++i) a.out.push_back(tensor(c.out[i], shapes.out[i]));
    for (std::size_t i = 0; i < c.saved.size(); ++i) a.saved.push_back(tensor(c.saved[i], shapes.saved[i].shape));
    for (const std::int32_t id : c.call->weights) a.weights.push_back(weight(id));
    const Primitive& primitive = c.call->what->primitive;
    const bool makes_gradient = primitive.gradient_in_forward() ? c.direction == Direction::Forward && c.wanted.any()
                                                                : c.direction == Direction::Backward;
    if (primitive.is_loss() && makes_gradient) a.loss_scale = run_.loss_scale;
    if (c.direction == Direction::Forward) return a;
    a.output_gradient = tensor(c.output_gradient, shapes.out[0]);
    for (std::size_t i = 0; i < c.input_gradients.size(); ++i) {
      const GradientTarget& target = c.input_gradients[i];
      a.input_gradients.emplace_back(target.mode, tensor(target.storage, shapes.in[i]),
                                     tensor(target.base, shapes.in[i]));
    }
    const auto mode = c.wanted.accumulates ? GradientTarget::Mode::Add : GradientTarget::Mode::Write;
    for (std::size_t i = 0; c.wanted.weights != 0 && i < c.call->weights.size(); ++i) {
      if ((c.wanted.weights & bit(i)) == 0) {
        a.weight_gradients.emplace_back();
        continue;
      }
      const std::size_t field = place(field_of(*pass_.module, place(c.call->weights[i])));
      a.weight_gradients.emplace_back(mode, weight_gradient_.field(field), at::Tensor(),
                                      tensor(c.contributions[i], shapes.weights[i].shape));
    }
    return a;
  }

  c10::InferenceMode no_autograd_;
  const PassRun& run_;
  const Pass& pass_;
  WorkspaceScope& scope_;
  Bucket weights_, frozen_, weight_gradient_;
};

bool is_bucket(const Operand& operand) {
  return operand.kind == OperandKind::Weights || operand.kind == OperandKind::FrozenWeights ||
         operand.kind == OperandKind::WeightGradient;
}

// The bucket that an operand is, or has a field of.
Bucket bucket_of(const BodyCall& call, const Operand& operand) {
  const bool read = operand.read != kNone;
  const ValueId value = read ? call.op.reads[place(operand.read)] : call.op.writes[place(operand.write)].value;
  const auto& tensor = call.graph.tensor_of(value);
  return {*tensor.layout, read ? call.reads.at(place(operand.read)) : call.writes.at(place(operand.write)),
          call.processor, tensor.type};
}

}  // namespace

std::int64_t run_pass(BodyCall& call, std::int64_t (*walk)(const PassRun&)) {
  const Operands operands(call);
  std::vector<std::byte*> addresses;
  const Layout *bucket = nullptr, *frozen = nullptr;
  for (const Operand& operand : call.work.pass->operands) {
    if (operand.field != kNone) {
      addresses.push_back(bucket_of(call, operand).begin_of(place(operand.field)));
      continue;
    }
    const bool read = operand.read != kNone;
    addresses.push_back(read ? call.reads.at(place(operand.read)) : call.writes.at(place(operand.write)));
    if (is_bucket(operand))
      (operand.kind == OperandKind::FrozenWeights ? frozen : bucket) = &bucket_of(call, operand).layout();
  }
  const std::string_view name = call.graph.label(call.op.label);
  const RandomKey random{call.scenario.seed,  call.step(), RandomKey::module_of(name.substr(0, name.find('.'))),
                         call.op.micro_batch, call.rank,   call.op.phase != Phase::Evaluate};
  const at::Tensor loss_scale = call.op.reads.empty() ? at::Tensor() : operands.loss_scale();
  return walk({*call.work.pass, addresses, bucket, frozen, call.processor, loss_scale, random, call.late_result});
}

std::int64_t walk_pass(const PassRun& run) { return Walk(run).run(); }

namespace {

std::int64_t run_derived(BodyCall& call) { return run_pass(call, walk_pass); }

}  // namespace

const BodyEntry& pass_body(const Pass& pass) {
  static constexpr BodyEntry kOnce{"pass", run_derived}, kAgain{"pass", run_derived, kRepeatable};
  return pass.has_result() || pass.draws_random() ? kOnce : kAgain;
}

}  // namespace tandem
