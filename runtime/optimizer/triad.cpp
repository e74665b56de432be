#include "runtime/optimizer/triad.hpp"

#include <cstdint>

namespace tandem {

void triad(const UpdateSpan& span) {
  const auto* __restrict gradient = static_cast<const std::uint16_t*>(span.gradient);
  auto* __restrict parameter = static_cast<std::uint16_t*>(span.parameter);
  std::int16_t* __restrict low = span.master_low;
  auto* __restrict m = static_cast<float*>(span.m);
  auto* __restrict v = static_cast<float*>(span.v);
  for (std::int64_t i = 0; i + kChunkElements <= span.elements; i += kChunkElements) {
    for (std::int64_t k = i; k < i + kChunkElements; ++k) {
      m[k] += 1;
      v[k] += 1;
    }
    for (std::int64_t k = i; k < i + kChunkElements; ++k) {
      parameter[k] = static_cast<std::uint16_t>(parameter[k] ^ gradient[k]);
      low[k] = static_cast<std::int16_t>(low[k] ^ 1);
    }
  }
}

}  // namespace tandem
