// CoTrain's separation distance (ICPP 2023): the first k layers are updated on the device, the rest on the CPU while
// the device goes on with the backward; k balances the two paths. Pure arithmetic on estimated durations.
#pragma once

#include <cstdint>
#include <vector>

namespace tandem {

// Estimated durations of one layer, in ns, in forward order.
struct LayerTimes {
  std::int64_t backward_ns = 0;
  std::int64_t gradient_copy_ns = 0;  // D2H
  std::int64_t cpu_update_ns = 0;
  std::int64_t device_update_ns = 0;
  std::int64_t parameter_copy_ns = 0;  // H2D
};

// From the start of the backward to the end of the device's part: backward and updates of the first k layers.
std::int64_t device_path_ns(const std::vector<LayerTimes>& layers, std::size_t k);
// From the start of the backward until the CPU's layers [k, n) are updated and back on the device. Gradients come from
// the last layer to the first; the CPU takes the lowest layer that has arrived (the next forward needs it first).
std::int64_t cpu_path_ns(const std::vector<LayerTimes>& layers, std::size_t k);

// The k in [0, most] that minimises the larger of the two paths; the smallest such k.
std::size_t choose_separation(const std::vector<LayerTimes>& layers, std::size_t most);

}  // namespace tandem
