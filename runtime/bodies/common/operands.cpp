#include "runtime/bodies/common/operands.hpp"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/native_layer_norm_backward.h>
#include <ATen/ops/sum.h>

#include <cstring>
#include <string>

#include "core/scenario/errors.hpp"

#undef CHECK  // LibTorch's logging defines one, too
#include "core/scheduler/check.hpp"

namespace tandem {

at::Tensor Bucket::operator[](std::string_view name) const {
  for (const Field& field : layout_->fields)
    if (field.name == name)
      return at::from_blob(begin_ + field.offset, at::IntArrayRef(field.shape.data(), field.shape.size()), at::kFloat);
  CHECK(false, "a bucket has no field", name);
}

void Bucket::zero_padding() const {
  for (std::size_t i = 0; i < layout_->fields.size(); ++i) {
    const Field& field = layout_->fields[i];
    const std::int64_t end = field.offset + field.elements() * size_of(DType::F32);
    const std::int64_t next =
        i + 1 < layout_->fields.size() ? layout_->fields[i + 1].offset : layout_->elements * size_of(DType::F32);
    std::memset(begin_ + end, 0, static_cast<std::size_t>(next - end));
  }
}

Operands::Operands(BodyCall& call) : call_(call) {
  const DType type = call.work.type;
  if (type == DType::F16 || type == DType::BF16)
    throw DeviceError("precision " + std::string(name_of(type)) +
                      " can be simulated, but not trained for real yet; use precision: fp32");
}

at::Tensor Operands::read(at::IntArrayRef shape, at::ScalarType type) {
  return at::from_blob(call_.reads.at(next_read_++), shape, type);
}

at::Tensor Operands::write(at::IntArrayRef shape, at::ScalarType type) {
  return at::from_blob(call_.writes.at(next_write_++), shape, type);
}

Bucket Operands::read_bucket() {
  const std::size_t index = next_read_++;
  return {*call_.graph.tensor_of(call_.op.reads[index]).layout, call_.reads.at(index)};
}

Bucket Operands::write_bucket() {
  const std::size_t index = next_write_++;
  return {*call_.graph.tensor_of(call_.op.writes[index].value).layout, call_.writes.at(index)};
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
  const auto [grad_input, grad_weight, grad_bias] = at::native_layer_norm_backward(
      grad, input, {input.size(1)}, mean, rstd, parameters[weight], parameters[bias], {true, true, true});
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
