// The size of STRONGHOLD's window of layers (after SC 2022): how many must be on the device so that copies and the
// CPU's updates hide behind computing. Pure arithmetic on estimated durations.
#pragma once

#include <cstdint>
#include <vector>

#include "core/policies/common/layers.hpp"

namespace tandem {

// True if with a window of m layers, of which the first m stay where they are,
// - a layer's parameters come in while the m - 1 layers before it compute, in the forward and in the backward;
// - a layer's gradient leaves while the m - 1 layers after it in the backward compute;
// - the CPU updates the layers behind the first m in no more time than a step of `passes` micro-batches computes.
bool window_hides(const std::vector<LayerTimes>& layers, std::int64_t passes, std::size_t m);

// The smallest m in [2, most] that hides all that; `most` if none does.
std::size_t choose_window(const std::vector<LayerTimes>& layers, std::int64_t passes, std::size_t most);

}  // namespace tandem
