#include "core/policies/cotrain/separation.hpp"

#include <algorithm>
#include <functional>
#include <queue>

#include "core/base/check.hpp"

namespace tandem {

std::int64_t device_path_ns(const std::vector<LayerTimes>& layers, std::size_t k) {
  std::int64_t path = 0;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    CHECK(layers[l].backward_ns >= 0 && layers[l].device_update_ns >= 0, "the path would not grow with k", l);
    path += layers[l].backward_ns + (l < k ? layers[l].device_update_ns : 0);
  }
  return path;
}

std::int64_t cpu_path_ns(const std::vector<LayerTimes>& layers, std::size_t k) {
  CHECK(k <= layers.size(), k, layers.size());
  std::int64_t backward = 0, copied = 0, cpu = 0, back = 0;
  std::vector<std::int64_t> arrivals(layers.size(), 0);
  for (std::size_t l = layers.size(); l-- > k;) {
    backward += layers[l].backward_ns;
    copied = std::max(copied, backward) + layers[l].gradient_copy_ns;
    arrivals[l] = copied;
  }
  // The queue holds arrived layers; the lowest goes first.
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> queue;
  std::size_t coming = layers.size();  // layers [k, coming) have not arrived yet
  while (coming > k || !queue.empty()) {
    while (coming > k && (queue.empty() ? true : arrivals[coming - 1] <= cpu)) {
      if (queue.empty()) cpu = std::max(cpu, arrivals[coming - 1]);
      queue.push(--coming);
    }
    CHECK(!queue.empty() && queue.top() >= coming, "a layer is updated before it has arrived", coming);
    const std::size_t l = queue.top();
    queue.pop();
    cpu += layers[l].cpu_update_ns;
    back = std::max(back, cpu) + layers[l].parameter_copy_ns;
  }
  return back;
}

// The device's path grows with k and the CPU's shrinks, so the best k is beside the crossing, found by bisection;
// layers that take the CPU no time make several as good.
std::size_t choose_separation(const std::vector<LayerTimes>& layers, std::size_t most) {
  most = std::min(most, layers.size());
  std::size_t low = 0, high = most;  // the first k whose device path is the longer one lies in [low, high]
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (device_path_ns(layers, middle) >= cpu_path_ns(layers, middle))
      high = middle;
    else
      low = middle + 1;
  }
  const auto longer = [&](std::size_t k) { return std::max(device_path_ns(layers, k), cpu_path_ns(layers, k)); };
  while (low > 0 && longer(low - 1) <= longer(low)) --low;
  return low;
}

}  // namespace tandem
