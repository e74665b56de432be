// The body of every op whose pass is derived from a program (core/model/passes.hpp).
#include <utility>

#include "core/base/errors.hpp"
#include "runtime/bodies/common/operands.hpp"
#include "runtime/body_table.hpp"
#include "runtime/primitives/common/primitive_body.hpp"
#include "runtime/torch_types.hpp"

namespace tandem {
namespace {

std::size_t place(std::int32_t id) { return static_cast<std::size_t>(id); }

// One op's walk over its pass.
class Walk {
 public:
  explicit Walk(BodyCall& call)
      : operands_(call), call_(call), pass_(*call.work.pass), scope_(*WorkspaceScope::current()) {
    if (const Operand* weights = pass_.find(OperandKind::Weights)) weights_ = bucket(weights->read, call.reads);
    if (const Operand* gradient = pass_.find(OperandKind::WeightGradient)) {
      weight_gradient_ = {*call.graph.tensor_of(call.op.writes[place(gradient->write)].value).layout,
                          call.writes.at(place(gradient->write)), call.processor, call.work.type};
    }
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
      try {
        (call.direction == Direction::Forward ? body->forward : body->backward)(arguments);
      } catch (const DeviceError& error) {
        throw DeviceError(call.call->name + " (" + std::string(body->name) + "): " + error.what());
      }
      if (call.direction == Direction::Forward && call.call->what->primitive.is_loss())
        result = give_result(call_, arguments.out[0]);
    }
    return result;
  }

 private:
  Bucket bucket(std::int32_t read, const std::vector<std::byte*>& at) const {
    const auto& tensor = call_.graph.tensor_of(call_.op.reads[place(read)]);
    return {*tensor.layout, at.at(place(read)), call_.processor, tensor.type};
  }
  std::byte* address(const Storage& storage) const {
    if (storage.operand == kNone) return static_cast<std::byte*>(scope_.at(storage.offset, storage.bytes));
    const Operand& operand = pass_.operands[place(storage.operand)];
    if (operand.field != kNone) return bucket(operand.read, call_.reads).begin_of(place(operand.field));
    return operand.read != kNone ? call_.reads.at(place(operand.read)) : call_.writes.at(place(operand.write));
  }
  at::Tensor tensor(std::int32_t storage, const Shape& shape) const {
    if (storage == kNone) return {};
    return tensor_at(call_.processor, address(pass_.storages[place(storage)]),
                     at::IntArrayRef(shape.dims.data(), shape.dims.size()), torch_type(shape.type));
  }
  Arguments arguments_of(const PassCall& c) const {
    const CallShapes& shapes = c.call->shapes;
    Arguments a{*c.call, c.wanted, {}, {}, {}, {}, {}, {}, {}, pass_.micro_batches, {}};
    for (std::size_t i = 0; i < c.in.size(); ++i) a.in.push_back(tensor(c.in[i], shapes.in[i]));
    for (std::size_t i = 0; i < c.out.size(); ++i) a.out.push_back(tensor(c.out[i], shapes.out[i]));
    for (std::size_t i = 0; i < c.saved.size(); ++i) a.saved.push_back(tensor(c.saved[i], shapes.saved[i].shape));
    for (const std::int32_t weight : c.call->weights)
      a.weights.push_back(weights_.is_there() ? weights_.field(place(weight)) : at::Tensor());
    const Primitive& primitive = c.call->what->primitive;
    if (primitive.is_loss() && c.wanted.any() && primitive.gradient_in_forward() == (c.direction == Direction::Forward))
      a.loss_scale = operands_.loss_scale();
    if (c.direction == Direction::Forward) return a;
    a.output_gradient = tensor(c.output_gradient, shapes.out[0]);
    for (std::size_t i = 0; i < c.input_gradients.size(); ++i) {
      const GradientTarget& target = c.input_gradients[i];
      a.input_gradients.emplace_back(target.mode, tensor(target.storage, shapes.in[i]),
                                     tensor(target.base, shapes.in[i]));
    }
    const auto mode = c.wanted.accumulates ? GradientTarget::Mode::Add : GradientTarget::Mode::Write;
    for (std::size_t i = 0; c.wanted.weights != 0 && i < c.call->weights.size(); ++i)
      a.weight_gradients.emplace_back(mode, weight_gradient_.field(place(c.call->weights[i])), at::Tensor(),
                                      tensor(c.contributions[i], shapes.weights[i].shape));
    return a;
  }

  Operands operands_;  // no autograd graph is recorded while it lives
  BodyCall& call_;
  const Pass& pass_;
  WorkspaceScope& scope_;
  Bucket weights_, weight_gradient_;
};

std::int64_t run_pass(BodyCall& call) { return Walk(call).run(); }

}  // namespace

const BodyEntry& pass_body(const Pass& pass) {
  static constexpr BodyEntry kOnce{"pass", run_pass}, kAgain{"pass", run_pass, kRepeatable};
  return pass.has_loss() ? kOnce : kAgain;
}

}  // namespace tandem
