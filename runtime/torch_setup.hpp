// How LibTorch is set so that runs repeat to the bit: called by the executor and by the reference alike.
// Must not know what is run.
#pragma once

#include "runtime/executors/body.hpp"

namespace c10 {
struct Allocator;
}

namespace tandem {

// LibTorch as executors use it: sets the process up (deterministic kernels, the workspace allocator).
BodyLibrary torch_library();

// What torch_library() and bodies change of the process: noted when this is made, and put back when it ends, so that a
// process that has other uses for LibTorch goes on as before. One at a time, on one thread.
class TorchSettings {
 public:
  TorchSettings();
  ~TorchSettings();
  TorchSettings(const TorchSettings&) = delete;
  TorchSettings& operator=(const TorchSettings&) = delete;

 private:
  c10::Allocator* allocator_;
  bool deterministic_, warns_only_, fills_;
  int threads_;
};

// Deterministic kernels, for the whole process.
void make_torch_deterministic();

// The intra-operator threads of the calling thread. Sums in LibTorch's kernels depend on this number.
void set_thread_count(int threads);

}  // namespace tandem
