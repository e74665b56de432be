#include "runtime/bodies/common/operands.hpp"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/native_layer_norm_backward.h>
#include <ATen/ops/sum.h>

#include <bit>
#include <string>

#include "core/base/errors.hpp"
#include "core/formats/layout.hpp"
#include "core/formats/sums.hpp"
#include "runtime/torch_types.hpp"

#undef CHECK  // LibTorch's logging defines one, too
#include "core/base/check.hpp"

namespace tandem {

at::Tensor tensor_at(Processor processor, void* begin, at::IntArrayRef shape, at::ScalarType type) {
  const at::Device device = processor == Processor::Host ? at::Device(at::kCPU) : at::Device(at::kCUDA, 0);
  return at::for_blob(begin, shape).options(at::TensorOptions(type).device(device)).target_device(device).make_tensor();
}

void copy_bytes(const BodyCall& call, std::byte* from, std::byte* to, std::int64_t bytes) {
  if (from != to)
    tensor_at(call.processor, to, {bytes}, at::kByte).copy_(tensor_at(call.processor, from, {bytes}, at::kByte));
}

at::Tensor Bucket::field(std::size_t place) const {
  const Field& field = layout_->fields.at(place);
  return tensor_at(processor_, begin_ + field_offset(field, type_),
                   at::IntArrayRef(field.shape.data(), field.shape.size()), torch_type(type_));
}

at::Tensor Bucket::operator[](std::string_view name) const {
  for (std::size_t i = 0; i < layout_->fields.size(); ++i)
    if (layout_->fields[i].name == name) return field(i);
  CHECK(false, "a bucket has no field", name);
}

void Bucket::zero_padding() const {
  for (std::size_t i = 0; i < layout_->fields.size(); ++i) {
    const Field& field = layout_->fields[i];
    const std::int64_t end = field_offset(field, type_) + field.elements() * size_of(type_);
    const std::int64_t next = i + 1 < layout_->fields.size() ? field_offset(layout_->fields[i + 1], type_)
                                                             : layout_->elements * size_of(type_);
    if (next > end) tensor_at(processor_, begin_ + end, {next - end}, at::kByte).zero_();
  }
}

at::ScalarType Operands::precision() const { return torch_type(call_.work.type); }

at::Tensor Operands::read(at::IntArrayRef shape, at::ScalarType type) {
  return tensor_at(call_.processor, call_.reads.at(next_read_++), shape, type);
}

at::Tensor Operands::write(at::IntArrayRef shape, at::ScalarType type) {
  return tensor_at(call_.processor, call_.writes.at(next_write_++), shape, type);
}

at::Tensor Operands::loss_scale() const {
  if (call_.graph.tensor_of(call_.op.reads.back()).role != Role::Scalar) return {};
  return tensor_at(call_.processor, call_.reads.back() + kLossScaleOffset, {}, at::kFloat);
}

Bucket Operands::read_bucket() {
  const std::size_t index = next_read_++;
  const auto& tensor = call_.graph.tensor_of(call_.op.reads[index]);
  return {*tensor.layout, call_.reads.at(index), call_.processor, tensor.type};
}

Bucket Operands::write_bucket() {
  const std::size_t index = next_write_++;
  const auto& tensor = call_.graph.tensor_of(call_.op.writes[index].value);
  return {*tensor.layout, call_.writes.at(index), call_.processor, tensor.type};
}

std::int64_t give_result(BodyCall& call, const at::Tensor& number) {
  if (call.processor == Processor::Host) return std::bit_cast<std::int64_t>(number.item<double>());
  tensor_at(Processor::Device, call.late_result, {}, at::kDouble).copy_(number);
  return 0;
}

Gradients::Gradients(Bucket bucket, bool accumulates) : bucket_(bucket), accumulates_(accumulates) {
  if (!accumulates) bucket_.zero_padding();
}

void Gradients::linear(const char* name, const at::Tensor& grad, const at::Tensor& input) const {
  weight((std::string(name) + ".weight").c_str(), grad, input);
  row_sum((std::string(name) + ".bias").c_str(), grad);
}

void Gradients::weight(const char* name, const at::Tensor& grad, const at::Tensor& input) const {
  at::Tensor target = bucket_[name];
  if (accumulates_) {
    target.add_(at::mm(grad.t(), input));
  } else {
    at::mm_out(target, grad.t(), input);
  }
}

void Gradients::row_sum(const char* name, const at::Tensor& rows) const {
  at::Tensor target = bucket_[name];
  if (accumulates_) {
    target.add_(at::sum(rows, 0));
  } else {
    at::sum_out(target, rows, 0);
  }
}

at::Tensor Gradients::norm(const char* name, const at::Tensor& grad, const at::Tensor& input, const at::Tensor& mean,
                           const at::Tensor& rstd, const Bucket& parameters) const {
  const std::string weight = std::string(name) + ".weight", bias = std::string(name) + ".bias";
  // The CPU's kernel takes statistics in the input's precision, the GPU's in fp32, in which they are kept.
  const auto statistic = [&](const at::Tensor& kept) { return input.is_cuda() ? kept : kept.to(input.scalar_type()); };
  const auto [grad_input, grad_weight, grad_bias] =
      at::native_layer_norm_backward(grad, input, {input.size(1)}, statistic(mean), statistic(rstd), parameters[weight],
                                     parameters[bias], {true, true, true});
  add(weight.c_str(), grad_weight);
  add(bias.c_str(), grad_bias);
  return grad_input;
}

void Gradients::add(const char* name, const at::Tensor& gradient) const {
  at::Tensor target = bucket_[name];
  if (accumulates_) {
    target.add_(gradient);
  } else {
    target.copy_(gradient);
  }
}

}  // namespace tandem
