// CoTrain's separation distance (ICPP 2023): the first k layers are updated on the device, the rest on the CPU while
// the device goes on with the backward; k balances the two paths. Pure arithmetic on estimated durations.
#pragma once

#include <cstdint>
#include <vector>

#include "core/policies/common/layers.hpp"

namespace tandem {

// From the start of the backward to the end of the device's part: backward and updates of the first k layers.
std::int64_t device_path_ns(const std::vector<LayerTimes>& layers, std::size_t k);
// From the start of the backward until the CPU's layers [k, n) are updated and back on the device. Gradients come from
// the last layer to the first; the CPU takes the lowest layer that has arrived (the next forward needs it first).
std::int64_t cpu_path_ns(const std::vector<LayerTimes>& layers, std::size_t k);

// The k in [0, most] that minimises the larger of the two paths; the smallest such k.
std::size_t choose_separation(const std::vector<LayerTimes>& layers, std::size_t most);

}  // namespace tandem
