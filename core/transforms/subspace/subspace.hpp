// Adam in a learned subspace (LSP-Offload): subspace_ops.hpp has the method. Must not know policies.
#pragma once

#include <cstdint>
#include <memory>

#include "core/graph/rewrite.hpp"

namespace tandem {

struct SubspaceUpdate {
  std::int64_t rank = 0, nonzeros = 0;  // d and r of the paper: sizes of a compressed matrix, non-zeros a row
  std::int64_t check_every = 0;         // steps from one look at the projectors to the next
  double threshold = 0;                 // they are fitted again where the relative bias is above it
  bool masters = true;                  // bf16 parameters keep the rest of their fp32 masters
};

std::shared_ptr<const Rewrite> subspace(const SubspaceUpdate& update);

}  // namespace tandem
