// Plain training as a PyTorch user writes it, on either processor: whole-graph autograd, fp32 master parameters, and
// LibTorch's fused Adam or the same formula as separate operations. Nothing of Tandem's graph, bodies or optimizer.
#pragma once

#include <vector>

#include "core/scenario/scenario.hpp"
#include "runtime/data.hpp"

namespace tandem::testing {

enum class PlainAdam { Fused, Unfused };

// The loss of each training step. AdamW without clipping or loss scaling, one micro-batch.
std::vector<double> plain_losses(const Scenario& scenario, const DataSource& data, bool on_gpu, PlainAdam adam);

}  // namespace tandem::testing
