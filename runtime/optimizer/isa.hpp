// Instruction sets that the optimizer's loops are compiled for. Results do not depend on the choice.
#pragma once

#include <cstdint>

namespace tandem {

enum class Isa : std::uint8_t { Scalar, Avx2, Avx512 };
inline constexpr int kIsaCount = 3;

// Whether this processor and its operating system have it: AVX2 with FMA and F16C; AVX-512 F, BW, DQ and VL.
bool has_isa(Isa isa);
Isa best_isa();

}  // namespace tandem
