// LibTorch's CPU memory: while a body runs it comes from the body's workspace; elsewhere LibTorch's own allocator
// serves. Must not know ops, lanes or who runs a body.
#pragma once

namespace c10 {
struct Allocator;
}

namespace tandem {

// Makes LibTorch ask WorkspaceScope for CPU memory. Before the first body; further calls change nothing.
void install_workspace_allocator();
// LibTorch has the allocator that it had before. What the other one gave out can still be freed.
void restore_allocator(c10::Allocator* before);

}  // namespace tandem
