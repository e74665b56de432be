// LibTorch's CPU memory: while a body runs it comes from the body's workspace; elsewhere LibTorch's own allocator
// serves. Must not know ops, lanes or who runs a body.
#pragma once

namespace tandem {

// Makes LibTorch ask WorkspaceScope for CPU memory. Once a process, before the first body; further calls do nothing.
void install_workspace_allocator();

}  // namespace tandem
