// Operands of an Adam update for tests: values from every corner of fp32, at any misalignment, and comparison by bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "runtime/optimizer/update.hpp"

namespace tandem {

// Every instruction set of this machine.
std::vector<Isa> isas();

// Zeros, subnormals, ones, ties of 16-bit rounding, huge numbers, infinities and NaNs, and random bits, in turn.
std::vector<float> corner_values(std::int64_t count, std::uint32_t seed);
// Values as training has them.
std::vector<float> plain_values(std::int64_t count, float scale, std::uint32_t seed);

// Elements of any type, beginning `misaligned` elements past a cache line.
class Operand {
 public:
  Operand(const std::vector<float>& values, DType type, std::int64_t misaligned);  // values that the type holds, or NaN
  Operand(const Operand& other);
  Operand& operator=(const Operand&) = delete;
  std::byte* data() { return bytes_.data() + begin_; }
  float* floats() { return reinterpret_cast<float*>(data()); }
  BFloat16* bfloat16s() { return reinterpret_cast<BFloat16*>(data()); }
  std::int16_t* int16s() { return reinterpret_cast<std::int16_t*>(data()); }
  // Any NaN counts as any other, as which payload is kept differs by processor.
  bool same_as(Operand& other);
  float value(std::int64_t i);

 private:
  std::vector<std::byte> bytes_;
  DType type_;
  std::int64_t misaligned_, elements_, begin_;
};

// All operands of a span, one copy for each run. In bf16 the masters begin as the two halves of those in `master`.
struct AdamCase {
  AdamCase(std::int64_t elements, bool corners, DType gradient_type, DType parameter_type, std::int64_t misaligned,
           std::uint32_t seed = 1);
  // `in_place`: the bf16 parameter takes the old one's storage.
  UpdateSpan span(bool in_place = false);
  bool same_as(AdamCase& other);

  std::int64_t elements;
  DType gradient_type, parameter_type;
  Operand gradient, master, m, v, parameter, old_parameter, master_low;
};

}  // namespace tandem
