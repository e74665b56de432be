// What codes of 4 bits cost a product that makes and reads them by kernels of one operation each: FlexLLMGen
// (compression.py). Must not know what is coded.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/kernels.hpp"

namespace tandem {

// Kernels, and bytes of a number at a streaming kernel's rate: they touch 25.5 and 13 bytes, at 0.65 of that rate by
// its row of OPT-6.7B, prompt 256, 4 bits: 56.72 tokens/s (bench_suite.py).
struct EagerCodes {
  std::int64_t kernels, bytes;
};
inline constexpr EagerCodes kEagerEncoding{12, 39}, kEagerDecoding{6, 20};

inline std::vector<Kernel> eager_kernels(const EagerCodes& codes, std::int64_t elements) {
  return std::vector<Kernel>(static_cast<std::size_t>(codes.kernels),
                             memory_kernel(codes.bytes * elements / codes.kernels));
}

}  // namespace tandem
