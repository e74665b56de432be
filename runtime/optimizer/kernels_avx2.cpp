// Eight elements at a time: AVX2, FMA and F16C.
#ifdef __x86_64__
#include <immintrin.h>

#include "runtime/optimizer/attended_rows_loop.hpp"
#include "runtime/optimizer/kernels.hpp"
#include "runtime/optimizer/one_bit_loop.hpp"
#include "runtime/optimizer/quantised_loop.hpp"
#include "runtime/optimizer/square_sum.hpp"

namespace tandem {
namespace {

struct F32x8 {
  __m256 x;
  F32x8() = default;
  F32x8(__m256 value) : x(value) {}  // NOLINT(google-explicit-constructor): the intrinsics' own type
  explicit F32x8(float value) : x(_mm256_set1_ps(value)) {}
};
inline F32x8 add(F32x8 a, F32x8 b) { return _mm256_add_ps(a.x, b.x); }
inline F32x8 subtract(F32x8 a, F32x8 b) { return _mm256_sub_ps(a.x, b.x); }
inline F32x8 multiply(F32x8 a, F32x8 b) { return _mm256_mul_ps(a.x, b.x); }
inline F32x8 divide(F32x8 a, F32x8 b) { return _mm256_div_ps(a.x, b.x); }
inline F32x8 square_root(F32x8 a) { return _mm256_sqrt_ps(a.x); }
inline F32x8 fused_multiply_add(F32x8 a, F32x8 b, F32x8 c) { return _mm256_fmadd_ps(a.x, b.x, c.x); }
inline F32x8 sign(F32x8 a) {
  const __m256 zero = _mm256_setzero_ps(), one = _mm256_set1_ps(1);
  return _mm256_sub_ps(_mm256_and_ps(_mm256_cmp_ps(a.x, zero, _CMP_GT_OQ), one),
                       _mm256_and_ps(_mm256_cmp_ps(a.x, zero, _CMP_LT_OQ), one));
}

struct Avx2Ops {
  using Number = F32x8;
  struct Packed {
    __m128i x;
  };
  static constexpr int kElements = 8;

  static F32x8 load(const float* at) { return _mm256_loadu_ps(at); }
  static F32x8 load(const BFloat16* at) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load_half(at)), 16));
  }
  static F32x8 load(const Float16* at) { return _mm256_cvtph_ps(load_half(at)); }
  static __m128i load_half(const void* at) { return _mm_loadu_si128(static_cast<const __m128i*>(at)); }

  static void store(float* at, F32x8 value) { _mm256_storeu_ps(at, value.x); }
  static void store(void* at, Packed value) { _mm_storeu_si128(static_cast<__m128i*>(at), value.x); }
  static void stream(void* at, Packed value) { _mm_stream_si128(static_cast<__m128i*>(at), value.x); }
  static void fence() { _mm_sfence(); }

  template <class T>
  static Packed encode(F32x8 value) {
    static_assert(std::is_same_v<T, Float16>);
    return {float16_of(value.x)};
  }

  // join_master() and split_master().
  static F32x8 join(const BFloat16* parameter, const std::int16_t* low) {
    const __m256i upper = _mm256_slli_epi32(_mm256_cvtepu16_epi32(load_half(parameter)), 16);
    return _mm256_castsi256_ps(_mm256_add_epi32(upper, _mm256_cvtepi16_epi32(load_half(low))));
  }
  struct Halves {
    Packed parameter, low;
  };
  static Halves split(F32x8 value) {
    const __m256i bits = _mm256_castps_si256(value.x);
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(value.x, value.x, _CMP_UNORD_Q));
    const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x8000)), 16);
    const __m256i low = _mm256_andnot_si256(nan, _mm256_and_si256(bits, _mm256_set1_epi32(0xFFFF)));
    return {{narrowed(_mm256_blendv_epi8(rounded, _mm256_set1_epi32(kBFloat16NaN), nan))}, {narrowed(low)}};
  }
  static __m128i float16_of(__m256 x) {
    const __m128i nan = narrowed(_mm256_srli_epi32(_mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)), 16));
    return _mm_blendv_epi8(_mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT), _mm_set1_epi16(kFloat16NaN), nan);
  }
  // The low halves of eight 32-bit numbers below 2^16.
  static __m128i narrowed(__m256i x) {
    return _mm_packus_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  }

  struct Sums {
    __m256d low, high;
  };
  template <class T>
  static void add_squares(Sums& sums, const T* at) {
    const __m256 x = load(at).x;
    const __m256d low = _mm256_cvtps_pd(_mm256_castps256_ps128(x)), high = _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
    sums.low = _mm256_fmadd_pd(low, low, sums.low);
    sums.high = _mm256_fmadd_pd(high, high, sums.high);
  }
  static void store(double* at, const Sums& sums) {
    _mm256_storeu_pd(at, sums.low);
    _mm256_storeu_pd(at + kSums / 2, sums.high);
  }
};

}  // namespace

const Kernels kAvx2Kernels{&update_of_any_states<Avx2Ops>, &square_sum_kernel<Avx2Ops>, &adam_by_signs<Avx2Ops>,
                           &score_rows_of<Avx2Ops>, &add_rows_of<Avx2Ops>};

}  // namespace tandem
#endif
