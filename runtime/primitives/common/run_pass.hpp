// The walk over the calls of a pass (core/model/passes.hpp), which knows no op.
#pragma once

#include <span>

#include "core/model/passes.hpp"
#include "runtime/executors/body.hpp"
#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {

// What a pass is walked with. Temporaries and values between calls lie in the thread's WorkspaceScope, of at least
// Pass::workspace_bytes.
struct PassRun {
  const Pass& pass;
  std::span<std::byte* const> operands;  // by place in Pass::operands
  const Layout* bucket = nullptr;        // of the module's weights that are trained and their gradient; null: neither
  const Layout* frozen = nullptr;        // of its other weights; null: the pass has none
  Processor processor = Processor::Host;
  at::Tensor loss_scale;  // undefined: none
  RandomKey random;
  std::int64_t* late_result = nullptr;  // BodyCall's
};
// Returns Event::result: a loss's bits, or a choice, where the pass computes one. Records no autograd graph.
std::int64_t walk_pass(const PassRun& run);
// An op whose work is a pass: its operands are found, and walked in that way.
std::int64_t run_pass(BodyCall& call, std::int64_t (*walk)(const PassRun&));

}  // namespace tandem
