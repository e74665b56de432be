// A loop with the memory streams of a bf16 optimizer step and next to no arithmetic: what memory allows.
#pragma once

#include "runtime/optimizer/update.hpp"

namespace tandem {

// Reads the 16-bit gradient; reads and writes m, v, master_low and, in place, the bf16 parameter.
void triad(const UpdateSpan& span);

}  // namespace tandem
