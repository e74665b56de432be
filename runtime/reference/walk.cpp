#include "runtime/reference/walk.hpp"

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/model/imported/module.hpp"
#include "runtime/imported/call.hpp"
#include "runtime/primitives/common/primitive_body.hpp"
#include "runtime/torch_types.hpp"

namespace tandem {
namespace {

using at::Tensor;

std::size_t place(std::int32_t id) { return static_cast<std::size_t>(id); }

at::IntArrayRef sizes_of(const Shape& shape) { return {shape.dims.data(), shape.dims.size()}; }

std::vector<Tensor> outputs_of(const ReferenceCall& c) {
  const PrimitiveBodyEntry* body = find_primitive_body(c.call.what->name);
  if (body == nullptr) throw DeviceError("no body performs " + std::string(c.call.what->name));
  std::vector<Tensor> outputs = body->reference(c);
  const std::vector<Shape>& shapes = c.call.shapes.out;
  CHECK(outputs.size() == shapes.size(), c.call.name, outputs.size(), shapes.size());
  for (std::size_t i = 0; i < outputs.size(); ++i)
    CHECK(outputs[i].sizes() == sizes_of(shapes[i]) && outputs[i].scalar_type() == torch_type(shapes[i].type),
          c.call.name, "gives another shape", outputs[i].sizes(), outputs[i].scalar_type());
  return outputs;
}

// As a body writes a value and its gradient, without strides: kernels, and the order of their sums, go by how operands
// lie.
Tensor as_written(const Tensor& output) {
  Tensor value = output.contiguous();
  if (value.requires_grad()) value.register_hook([](const Tensor& gradient) { return gradient.contiguous(); });
  return value;
}

void add_loss(const Call& call, const Tensor& loss, ReferenceValues& to) {
  const Primitive& primitive = call.what->primitive;
  if (!primitive.is_loss()) return;
  Tensor& sum = primitive.is_auxiliary() ? to.auxiliary_loss : to.own_loss;
  sum = sum_of_losses(sum, loss);
}

// Forward's calls alone, from which autograd makes what backward's calls must equal.
ReferenceValues walk_imported_reference(const ImportedProgram& program, const std::vector<Tensor>& inputs,
                                        const std::vector<Tensor>& weights, const RandomKey& random) {
  std::vector<Tensor> values(program.values.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) values[place(program.inputs[i].value)] = inputs[i];
  for (std::size_t i = 0; i < weights.size(); ++i) values[place(program.weights[i].value)] = weights[i];
  for (const ImportedCall& call : program.forward) {
    const auto processor = inputs.front().is_cpu() ? Processor::Host : Processor::Device;
    const std::vector<Tensor> results = perform(call, values, program, processor, random);
    for (std::size_t i = 0; i < results.size(); ++i) values[place(call.out[i])] = results[i];
  }
  ReferenceValues found;
  for (const ImportedOutput& output : program.outputs) found.outputs.push_back(values[place(output.value)]);
  if (program.has_loss()) found.own_loss = found.outputs[0];
  return found;
}

}  // namespace

at::Tensor sum_of_losses(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined()) return b;
  return b.defined() ? a.add(b) : a;
}

ReferenceValues walk_reference(const Module& module, const std::vector<at::Tensor>& inputs,
                               const std::vector<at::Tensor>& weights, const RandomKey& random,
                               const std::vector<at::Tensor>& carried) {
  CHECK(inputs.size() == module.inputs.size() && weights.size() == module.weights.size(), module.name);
  CHECK(carried.size() == module.carried.size(), module.name, carried.size());
  if (const ImportedProgram* program = program_of(module))
    return walk_imported_reference(*program, inputs, weights, random);
  std::vector<at::Tensor> locals(module.locals.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) locals[place(module.inputs[i])] = inputs[i];
  for (std::size_t i = 0; i < carried.size(); ++i) locals[place(module.carried[i])] = carried[i];
  ReferenceValues values;
  for (const Call& call : module.program) {
    ReferenceCall c{call, {}, {}, random};
    for (const LocalId in : call.in) c.in.push_back(locals[place(in)]);
    for (const std::int32_t weight : call.weights) c.weights.push_back(weights[place(weight)]);
    const std::vector<at::Tensor> outputs = outputs_of(c);
    for (std::size_t i = 0; i < outputs.size(); ++i) locals[place(call.out[i])] = as_written(outputs[i]);
    add_loss(call, outputs[0], values);
    if (call.what->primitive.is_own_loss()) values.scores = c.in[0];
  }
  for (const LocalId out : module.outputs) values.outputs.push_back(locals[place(out)]);
  return values;
}

}  // namespace tandem
