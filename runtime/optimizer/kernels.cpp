#include "runtime/optimizer/kernels.hpp"

#include "core/base/check.hpp"

namespace tandem {

const Kernels& kernels_of(Isa isa) {
  CHECK(has_isa(isa), static_cast<int>(isa));
#ifdef __x86_64__
  if (isa == Isa::Avx512) return kAvx512Kernels;
  if (isa == Isa::Avx2) return kAvx2Kernels;
#endif
  return kScalarKernels;
}

}  // namespace tandem
