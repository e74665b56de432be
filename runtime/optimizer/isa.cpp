#include "runtime/optimizer/isa.hpp"

#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace tandem {

#ifdef __x86_64__
namespace {

// Asked of the processor itself: not every compiler's __builtin_cpu_supports knows the name.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c(); }

bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

}  // namespace
#else
namespace {

bool has_avx2() { return false; }
bool has_avx512() { return false; }

}  // namespace
#endif

bool has_isa(Isa isa) {
  static const bool kAvx2 = has_avx2(), kAvx512 = has_avx512();
  return isa == Isa::Scalar || (isa == Isa::Avx2 && kAvx2) || (isa == Isa::Avx512 && kAvx512);
}

Isa best_isa() {
  if (has_isa(Isa::Avx512)) return Isa::Avx512;
  return has_isa(Isa::Avx2) ? Isa::Avx2 : Isa::Scalar;
}

}  // namespace tandem
