// Sixteen elements at a time: AVX-512 F, BW, DQ and VL. AVX512_BF16's own rounding is of no use here: its ties go to
// even, and it takes subnormal numbers for zero.
#ifdef __x86_64__
#include <immintrin.h>

#include "runtime/optimizer/attended_rows_loop.hpp"
#include "runtime/optimizer/kernels.hpp"
#include "runtime/optimizer/one_bit_loop.hpp"
#include "runtime/optimizer/quantised_loop.hpp"
#include "runtime/optimizer/square_sum.hpp"

namespace tandem {
namespace {

struct F32x16 {
  __m512 x;
  F32x16() = default;
  F32x16(__m512 value) : x(value) {}  // NOLINT(google-explicit-constructor): the intrinsics' own type
  explicit F32x16(float value) : x(_mm512_set1_ps(value)) {}
};
inline F32x16 add(F32x16 a, F32x16 b) { return _mm512_add_ps(a.x, b.x); }
inline F32x16 subtract(F32x16 a, F32x16 b) { return _mm512_sub_ps(a.x, b.x); }
inline F32x16 multiply(F32x16 a, F32x16 b) { return _mm512_mul_ps(a.x, b.x); }
inline F32x16 divide(F32x16 a, F32x16 b) { return _mm512_div_ps(a.x, b.x); }
inline F32x16 square_root(F32x16 a) { return _mm512_sqrt_ps(a.x); }
inline F32x16 fused_multiply_add(F32x16 a, F32x16 b, F32x16 c) { return _mm512_fmadd_ps(a.x, b.x, c.x); }
inline F32x16 sign(F32x16 a) {
  const __m512 zero = _mm512_setzero_ps(), one = _mm512_set1_ps(1);
  return _mm512_sub_ps(_mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a.x, zero, _CMP_GT_OQ), one),
                       _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a.x, zero, _CMP_LT_OQ), one));
}

struct Avx512Ops {
  using Number = F32x16;
  struct Packed {
    __m256i x;
  };
  static constexpr int kElements = 16;

  static F32x16 load(const float* at) { return _mm512_loadu_ps(at); }
  static F32x16 load(const BFloat16* at) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(load_half(at)), 16));
  }
  static F32x16 load(const Float16* at) { return _mm512_cvtph_ps(load_half(at)); }
  static __m256i load_half(const void* at) { return _mm256_loadu_si256(static_cast<const __m256i*>(at)); }

  static void store(float* at, F32x16 value) { _mm512_storeu_ps(at, value.x); }
  static void store(void* at, Packed value) { _mm256_storeu_si256(static_cast<__m256i*>(at), value.x); }
  static void stream(void* at, Packed value) { _mm256_stream_si256(static_cast<__m256i*>(at), value.x); }
  static void fence() { _mm_sfence(); }

  template <class T>
  static Packed encode(F32x16 value) {
    static_assert(std::is_same_v<T, Float16>);
    const __mmask16 nan = _mm512_cmp_ps_mask(value.x, value.x, _CMP_UNORD_Q);
    return {_mm256_mask_mov_epi16(_mm512_cvtps_ph(value.x, _MM_FROUND_TO_NEAREST_INT), nan,
                                  _mm256_set1_epi16(kFloat16NaN))};
  }

  // join_master() and split_master().
  static F32x16 join(const BFloat16* parameter, const std::int16_t* low) {
    const __m512i upper = _mm512_slli_epi32(_mm512_cvtepu16_epi32(load_half(parameter)), 16);
    return _mm512_castsi512_ps(_mm512_add_epi32(upper, _mm512_cvtepi16_epi32(load_half(low))));
  }
  struct Halves {
    Packed parameter, low;
  };
  static Halves split(F32x16 value) {
    const __mmask16 nan = _mm512_cmp_ps_mask(value.x, value.x, _CMP_UNORD_Q);
    const __m512i bits = _mm512_castps_si512(value.x);
    const __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x8000)), 16);
    const __m256i parameter = _mm512_cvtepi32_epi16(rounded);
    const __m256i low = _mm512_cvtepi32_epi16(bits);
    return {{_mm256_mask_mov_epi16(parameter, nan, _mm256_set1_epi16(kBFloat16NaN))},
            {_mm256_mask_mov_epi16(low, nan, _mm256_setzero_si256())}};
  }

  struct Sums {
    __m512d x;
  };
  static void add_squares(Sums& sums, const float* at) { add_squares(sums, _mm256_loadu_ps(at)); }
  static void add_squares(Sums& sums, const BFloat16* at) {
    add_squares(sums, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load_eight(at)), 16)));
  }
  static void add_squares(Sums& sums, const Float16* at) { add_squares(sums, _mm256_cvtph_ps(load_eight(at))); }
  static __m128i load_eight(const void* at) { return _mm_loadu_si128(static_cast<const __m128i*>(at)); }
  static void add_squares(Sums& sums, __m256 elements) {
    const __m512d x = _mm512_cvtps_pd(elements);
    sums.x = _mm512_fmadd_pd(x, x, sums.x);
  }
  static void store(double* at, const Sums& sums) { _mm512_storeu_pd(at, sums.x); }
};

}  // namespace

const Kernels kAvx512Kernels{&update_of_any_states<Avx512Ops>, &square_sum_kernel<Avx512Ops>, &adam_by_signs<Avx512Ops>,
                             &score_rows_of<Avx512Ops>, &add_rows_of<Avx512Ops>};

}  // namespace tandem
#endif
