// Bodies of the mlp family. Work::sizes: batch, inputs, outputs, micro_batches, input_gradient, accumulates. Operands
// in the order of core/workloads/common/plan.hpp.
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/threshold_backward.h>

#include "runtime/bodies/common/load.hpp"
#include "runtime/bodies/common/networks.hpp"

namespace tandem {
namespace {

constexpr BodyEntry kBodies[] = {
    {"mlp.parameters.load", load_parameters},
    {"mlp.batch.load", load_image_batch},
};

}  // namespace

std::span<const BodyEntry> mlp_bodies() { return kBodies; }

}  // namespace tandem
