// A loop with the memory streams of a mixed-precision optimizer step and next to no arithmetic: what memory allows.
#pragma once

#include "runtime/optimizer/adam.hpp"

namespace tandem {

// Reads the 16-bit gradient; reads and writes master, m and v; writes the 16-bit parameter, streamed where it begins at
// a cache line.
void triad(const AdamSpan& span);

}  // namespace tandem
