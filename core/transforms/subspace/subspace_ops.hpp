// Adam in a learned subspace (LSP-Offload, Chen et al., arXiv 2406.10181): the layouts, kernels and temporaries of its
// ops. Must not know policies or machines.
//
// A matrix W [m, n] with gradient G has two projectors, P [m, d] and Q [n, d], of r non-zeros a row at fixed random
// places. Each training step:
//   compress  S = P^T G Q, d x d, which is all that travels; other fields travel as they are
//   update    Adam on S, whose moments are d x d, too; gives the change D of a zero parameter
//   apply     W = (1 - decay) W + P D Q^T
// and now and then, before compress, where the relative bias |P P^T G Q Q^T - G| / |G| is above a threshold:
//   fit       kFitSteps steps of AdamW on the values of P and Q lower it; the moments follow into the new subspace,
//             M = C M E and V = (C o C) V (E o E) with C = P'^T P, E = Q^T Q'
#pragma once

#include <memory>
#include <vector>

#include "core/graph/graph.hpp"
#include "core/transforms/subspace/subspace.hpp"

namespace tandem {

// The paper's artifact (github gulang2019/LSP-Offload, its runs of GPT-2 Large).
inline constexpr int kFitSteps = 100;

// Matrices of more than d rows and columns are compressed.
bool compresses(const Field& field, std::int64_t rank);
// Of S, of D and of the moments: a matrix that is compressed has shape [d, d], all other fields are flat.
std::shared_ptr<const Layout> subspace_layout(const Layout& layout, std::int64_t rank);
// Of the projectors' non-zeros, and of their columns: fields "NAME.left" [m, r] and "NAME.right" [n, r] for each matrix
// that is compressed. No fields: there is none.
std::shared_ptr<const Layout> projector_layout(const Layout& layout, const SubspaceUpdate& subspace);

// What an op does for a bucket, and the temporaries of its body (runtime/bodies/subspace.cpp).
struct SubspaceOp {
  std::vector<Kernel> kernels;
  std::int64_t workspace_bytes = 0;
};
SubspaceOp compress_op(const Layout& layout, const SubspaceUpdate& subspace, DType type, bool gpu);
SubspaceOp apply_op(const Layout& layout, const SubspaceUpdate& subspace, DType type, bool gpu);
SubspaceOp fit_op(const Layout& layout, const SubspaceUpdate& subspace, DType type, bool gpu);

}  // namespace tandem
