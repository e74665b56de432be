// LibTorch's CUDA memory: while a body runs it comes from the body's workspace in the device arena; elsewhere (set-up)
// from CUDA. Must not know ops, lanes or who runs a body.
#pragma once

namespace tandem {

// Once a process, before LibTorch first allocates on the device; further calls do nothing.
void install_cuda_workspace_allocator();

}  // namespace tandem
