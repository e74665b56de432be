#include "runtime/bodies/common/operands.hpp"

#include <ATen/ops/from_blob.h>

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
  const auto shape = layout_->fields.at(place).padded_shape();
  return tensor_at(processor_, begin_of(place), at::IntArrayRef(shape.data(), shape.size()), torch_type(type_));
}

std::byte* Bucket::begin_of(std::size_t place) const { return begin_ + field_offset(layout_->fields.at(place), type_); }

at::Tensor Bucket::operator[](std::string_view name) const {
  for (std::size_t i = 0; i < layout_->fields.size(); ++i)
    if (const Field& field = layout_->fields[i]; field.name == name)
      return tensor_at(processor_, begin_of(i), at::IntArrayRef(field.shape.data(), field.shape.size()),
                       torch_type(type_));
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
  return give_result(call.processor, call.late_result, number);
}

std::int64_t give_result(Processor processor, std::int64_t* late_result, const at::Tensor& numbers) {
  const at::Tensor number = numbers.numel() == 1 ? numbers : numbers.view({-1}).narrow(0, 0, 1);
  const bool is_integer = number.scalar_type() == at::kLong;
  if (processor == Processor::Host)
    return is_integer ? number.item<std::int64_t>() : std::bit_cast<std::int64_t>(number.item<double>());
  tensor_at(Processor::Device, late_result, number.sizes(), is_integer ? at::kLong : at::kDouble).copy_(number);
  return 0;
}

}  // namespace tandem
