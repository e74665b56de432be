// What a number becomes that is sent in 16 bits: the CPU and CUDA call these, and agree to the bit.
#pragma once

#include "core/base/host_device.hpp"
#include "runtime/optimizer/low_precision.hpp"

namespace tandem {

inline constexpr float kLargestFloat16 = 65504;

// What is no number, and infinity, stay so.
TANDEM_ALWAYS_INLINE Float16 sent_as(Float16, float number) {
  const bool beyond = number - number == 0 && (number > kLargestFloat16 || number < -kLargestFloat16);
  return to_float16(!beyond ? number : number > 0 ? kLargestFloat16 : -kLargestFloat16);
}
TANDEM_ALWAYS_INLINE BFloat16 sent_as(BFloat16, float number) { return to_bfloat16(number); }

}  // namespace tandem
