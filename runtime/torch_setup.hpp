// How LibTorch is set so that runs repeat to the bit: called by the executor and by the reference alike.
// Must not know what is run.
#pragma once

namespace tandem {

// Deterministic kernels, for the whole process.
void make_torch_deterministic();

// The intra-operator threads of the calling thread. Sums in LibTorch's kernels depend on this number.
void set_thread_count(int threads);

}  // namespace tandem
