#include "runtime/optimizer/triad.hpp"

#include <cstdint>
#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace tandem {
namespace {

void write_line(std::uint16_t* to, const std::uint16_t* from) {
#ifdef __x86_64__
  for (int i = 0; i < kChunkElements; i += 8)
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
#else
  for (int i = 0; i < kChunkElements; ++i) to[i] = from[i];
#endif
}

}  // namespace

void triad(const AdamSpan& span) {
  const auto* gradient = static_cast<const std::uint16_t*>(span.gradient);
  auto* parameter = static_cast<std::uint16_t*>(span.parameter);
  float* __restrict master = span.master, * __restrict m = span.m, * __restrict v = span.v;
  for (std::int64_t i = 0; i + kChunkElements <= span.elements; i += kChunkElements) {
    for (std::int64_t k = i; k < i + kChunkElements; ++k) {
      master[k] += 1;
      m[k] += 1;
      v[k] += 1;
    }
    write_line(parameter + i, gradient + i);
  }
}

}  // namespace tandem
