#include "tests/executors/adam_fixture.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/optimizer/low_precision.hpp"

namespace tandem {
namespace {

constexpr std::size_t kLine = 64;

void write(std::byte* at, DType type, float value) {
  if (type == DType::F32) std::memcpy(at, &value, sizeof(value));
  std::uint16_t bits = type == DType::BF16 ? to_bfloat16(value).bits : to_float16(value).bits;
  if (type == DType::I16) bits = static_cast<std::uint16_t>(static_cast<std::int16_t>(value));
  if (type != DType::F32) std::memcpy(at, &bits, sizeof(bits));
}

std::vector<float> old_parameters(Operand& master, std::int64_t count) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(to_float(split_master(master.value(i)).parameter));
  return values;
}

std::vector<float> lows(Operand& master, std::int64_t count) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(split_master(master.value(i)).low);
  return values;
}

}  // namespace

std::vector<Isa> isas() {
  std::vector<Isa> found;
  for (const Isa isa : {Isa::Scalar, Isa::Avx2, Isa::Avx512})
    if (has_isa(isa)) found.push_back(isa);
  return found;
}

std::vector<float> corner_values(std::int64_t count, std::uint32_t seed) {
  using Limits = std::numeric_limits<float>;
  static constexpr float kCorners[] = {
      0.0F, -0.0F, 1.0F, -1.0F, Limits::denorm_min(), -Limits::denorm_min(), Limits::min(), -Limits::min() / 3,
      Limits::max(), -Limits::max(), Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(), 65504.0F, 65519.99F,
      65520.0F, -65536.0F, 0x1p-14F, 0x1p-24F, 0x1p-25F, 0x1.000002p-25F, 0x1.8p-24F, 0x1p-126F,
      // Ties and their neighbours: bf16 keeps 8 bits, fp16 11.
      0x1.01p0F, 0x1.03p0F, 0x1.010002p0F, 0x1.00fffep0F, 0x1.002p0F, 0x1.006p0F, 0x1.002002p0F, 1e-20F, 1e20F};
  std::mt19937 random(seed);
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto bits = static_cast<std::uint32_t>(random());
    values.push_back(bits % 2 == 0 ? kCorners[bits / 2 % std::size(kCorners)]
                                   : std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  }
  return values;
}

std::vector<float> plain_values(std::int64_t count, float scale, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(normal(random));
  return values;
}

Operand::Operand(const std::vector<float>& values, DType type, std::int64_t misaligned)
    : bytes_((values.size() + static_cast<std::size_t>(misaligned)) * sizeof(float) + 2 * kLine, std::byte{0xA5}),
      type_(type),
      misaligned_(misaligned),
      elements_(static_cast<std::int64_t>(values.size())) {
  const std::size_t past = reinterpret_cast<std::uintptr_t>(bytes_.data()) % kLine;
  begin_ = static_cast<std::int64_t>(kLine - past) + misaligned * size_of(type);
  for (std::int64_t i = 0; i < elements_; ++i)
    write(data() + i * size_of(type), type, values[static_cast<std::size_t>(i)]);
}

// Of the same misalignment, whatever the allocator says, and the same bytes around the elements.
Operand::Operand(const Operand& other)
    : Operand(std::vector<float>(static_cast<std::size_t>(other.elements_)), other.type_, other.misaligned_) {
  std::memcpy(data(), other.bytes_.data() + other.begin_, static_cast<std::size_t>(elements_ * size_of(type_)));
}

float Operand::value(std::int64_t i) {
  const std::byte* at = data() + i * size_of(type_);
  float value = 0;
  if (type_ == DType::F32) std::memcpy(&value, at, sizeof(value));
  BFloat16 bf16{};
  Float16 fp16{};
  if (type_ == DType::BF16) std::memcpy(&bf16, at, sizeof(bf16)), value = to_float(bf16);
  if (type_ == DType::F16) std::memcpy(&fp16, at, sizeof(fp16)), value = to_float(fp16);
  return value;
}

bool Operand::same_as(Operand& other) {
  const std::int64_t size = size_of(type_);
  for (std::int64_t i = -1; i <= elements_; ++i) {  // with a neighbour at each end, which must be untouched
    const bool inside = i >= 0 && i < elements_;
    if (inside && type_ == DType::F32 && std::isnan(value(i)) && std::isnan(other.value(i))) continue;
    if (std::memcmp(data() + i * size, other.data() + i * size, static_cast<std::size_t>(size)) != 0) return false;
  }
  return true;
}

AdamCase::AdamCase(std::int64_t count, bool corners, DType of_gradient, DType of_parameter, std::int64_t misaligned,
                   std::uint32_t seed)
    : elements(count),
      gradient_type(of_gradient),
      parameter_type(of_parameter),
      gradient(corners ? corner_values(count, seed) : plain_values(count, 1, seed), of_gradient, misaligned),
      master(corners ? corner_values(count, seed + 1) : plain_values(count, 1, seed + 1), DType::F32, misaligned),
      m(corners ? corner_values(count, seed + 2) : plain_values(count, 0.1F, seed + 2), DType::F32, misaligned),
      v(corners ? corner_values(count, seed + 3) : plain_values(count, 0.01F, seed + 3), DType::F32, misaligned),
      parameter(std::vector<float>(static_cast<std::size_t>(count)), of_parameter, misaligned),
      old_parameter(old_parameters(master, count), DType::BF16, misaligned),
      master_low(lows(master, count), DType::I16, misaligned) {
  if (corners) return;
  for (std::int64_t i = 0; i < count; ++i) v.floats()[i] = std::abs(v.floats()[i]);
}

UpdateSpan AdamCase::span(bool in_place) {
  UpdateSpan span{.gradient = gradient.data(),
                  .m = m.floats(),
                  .v = v.floats(),
                  .elements = elements,
                  .gradient_type = gradient_type,
                  .parameter_type = parameter_type};
  if (parameter_type != DType::BF16) span.master = master.floats();
  if (parameter_type != DType::F32) span.parameter = parameter.data();
  if (parameter_type != DType::BF16) return span;
  span.old_parameter = old_parameter.bfloat16s();
  span.master_low = master_low.int16s();
  if (in_place) span.parameter = old_parameter.data();
  return span;
}

bool AdamCase::same_as(AdamCase& other) {
  return master.same_as(other.master) && m.same_as(other.m) && v.same_as(other.v) && gradient.same_as(other.gradient) &&
         parameter.same_as(other.parameter) && old_parameter.same_as(other.old_parameter) &&
         master_low.same_as(other.master_low);
}

}  // namespace tandem
