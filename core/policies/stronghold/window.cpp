#include "core/policies/stronghold/window.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace tandem {

bool window_hides(const std::vector<LayerTimes>& layers, std::int64_t passes, std::size_t m) {
  CHECK(m >= 2 && passes >= 1, "a layer that computes and one that comes in", m, passes);
  std::int64_t computing = 0, updates = 0;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    computing += layers[l].forward_ns + layers[l].recompute_ns + layers[l].backward_ns;
    if (l >= m) updates += layers[l].cpu_update_ns;
  }
  if (updates > passes * computing) return false;
  // Each run of m - 1 layers [first, first + m - 1), with the layers before and after it.
  std::int64_t forward = 0, backward = 0;
  for (std::size_t end = 0; end < layers.size(); ++end) {
    forward += layers[end].forward_ns;
    backward += layers[end].recompute_ns + layers[end].backward_ns;
    if (end + 1 < m - 1) continue;
    const std::size_t first = end + 2 - m;
    if (end + 1 < layers.size() && end + 1 >= m) {
      const LayerTimes& next = layers[end + 1];
      if (next.parameter_copy_ns > forward || next.gradient_copy_ns > backward) return false;
    }
    if (first > m && layers[first - 1].parameter_copy_ns > backward) return false;
    forward -= layers[first].forward_ns;
    backward -= layers[first].recompute_ns + layers[first].backward_ns;
  }
  return true;
}

std::size_t choose_window(const std::vector<LayerTimes>& layers, std::int64_t passes, std::size_t most) {
  most = std::min(most, layers.size());
  std::size_t m = 2;
  while (m < most && !window_hides(layers, passes, m)) ++m;
  return std::min(m, most);
}

}  // namespace tandem
