// How LibTorch is set so that runs repeat to the bit: called by the executor and by the reference alike.
// Must not know what is run.
#pragma once

#include "runtime/executors/body.hpp"

namespace tandem {

// LibTorch as executors use it: sets the process up (deterministic kernels, the workspace allocator).
BodyLibrary torch_library();

// Deterministic kernels, for the whole process.
void make_torch_deterministic();

// The intra-operator threads of the calling thread. Sums in LibTorch's kernels depend on this number.
void set_thread_count(int threads);

}  // namespace tandem
