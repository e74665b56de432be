#include "core/policies/protrain/chunks.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace tandem {
namespace {

// Passes that are gone through one by one.
constexpr std::int64_t kPasses = 4;
// Backwards ahead of which what was swapped is brought back: two ahead of what is issued, which is about two layers
// ahead of what computes.
constexpr std::size_t kSwapAhead = 4;
// So long ago that nothing waits for it.
constexpr std::int64_t kLongAgo = -(std::int64_t{1} << 60);

// The two times that carry over.
struct Times {
  std::int64_t device_ns = kLongAgo, cpu_ns = kLongAgo;
};

// The lanes while one step runs: each holds the time at which it is done with what it has so far.
class Lanes {
 public:
  Lanes(const std::vector<LayerTimes>& layers, const ChunkPlan& plan, const Times& start)
      : layers_(layers),
        plan_(plan),
        used_(layers.size(), start.device_ns),
        device_(start.device_ns),
        h2d_(start.device_ns),
        cpu_(start.cpu_ns) {}

  // `ready`: when the streamed chunks are updated; `hits`: so many of them are in a buffer already.
  void forward(std::int64_t ready, std::size_t hits) {
    bool swaps = false;
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      if (l >= plan_.persistent + hits)
        fetch(l, l >= plan_.persistent + plan_.buffers ? used_[l - plan_.buffers] : ready);
      compute(l, layers_[l].forward_ns);
      d2h_ = std::max(d2h_, device_) + layers_[l].saved_out_ns;
      swaps |= layers_[l].saved_out_ns > 0;
    }
    if (swaps) device_ = std::max(device_, d2h_);
  }

  // Of the layers from `end` - 1 down to `begin`.
  void backward(std::size_t begin, std::size_t end) {
    const std::size_t n = layers_.size();
    CHECK(begin <= end && end <= n, begin, end, n);
    for (std::size_t l = end; l-- > begin;) {
      const LayerTimes& layer = layers_[l];
      if (layer.saved_in_ns > 0)
        h2d_ = std::max(h2d_, l + kSwapAhead < n ? used_[l + kSwapAhead] : kLongAgo) + layer.saved_in_ns;
      if (l >= plan_.persistent && l + plan_.buffers < n) fetch(l, used_[l + plan_.buffers]);
      if (layer.saved_in_ns > 0) device_ = std::max(device_, h2d_);
      compute(l, layer.recompute_ns + layer.backward_ns);
    }
  }

  // `scaled` gives a time's share that is counted.
  template <typename F>
  void update_on_device(F&& scaled) {
    for (std::size_t l = 0; l < plan_.persistent; ++l) device_ += scaled(layers_[l].device_update_ns);
  }
  template <typename F>
  void update_on_cpu(bool updates_wait, F&& scaled) {
    if (updates_wait) {
      std::int64_t backward_ns = device_;
      for (std::size_t l = 0; l < plan_.persistent; ++l)
        backward_ns += layers_[l].recompute_ns + layers_[l].backward_ns;
      cpu_ = std::max(cpu_, backward_ns);
    }
    for (std::size_t l = layers_.size(); l-- > plan_.persistent;) {
      d2h_ = std::max(d2h_, used_[l]) + scaled(layers_[l].gradient_copy_ns);
      cpu_ = std::max(cpu_, d2h_) + scaled(layers_[l].cpu_update_ns);
    }
  }

  Times times() const { return {device_, plan_.persistent < layers_.size() ? cpu_ : kLongAgo}; }

 private:
  void fetch(std::size_t l, std::int64_t buffer_free) {
    h2d_ = std::max(h2d_, buffer_free) + layers_[l].parameter_copy_ns;
    device_ = std::max(device_, h2d_);
  }
  void compute(std::size_t l, std::int64_t ns) {
    CHECK(ns >= 0, "computing takes less than no time", l, ns);
    used_[l] = device_ += ns;
  }

  const std::vector<LayerTimes>& layers_;
  const ChunkPlan& plan_;
  std::vector<std::int64_t> used_;  // by layer: when its last op ended
  std::int64_t device_, h2d_, d2h_ = kLongAgo, cpu_;
};

// From one step's times to the next one's, over `taken` of its passes; updates count in the same proportion.
Times after_step(const std::vector<LayerTimes>& layers, const StepShape& shape, const ChunkPlan& plan,
                 std::int64_t taken, const Times& start) {
  const auto scaled = [&](std::int64_t ns) { return ns * taken / shape.passes; };
  Lanes lanes(layers, plan, start);
  lanes.backward(0, plan.persistent);
  lanes.update_on_device(scaled);
  for (std::int64_t pass = 0; pass < taken; ++pass) {
    lanes.forward(start.cpu_ns, pass == 0 ? 0 : plan.buffers);
    lanes.backward(pass + 1 == taken ? plan.persistent : 0, layers.size());
  }
  lanes.update_on_cpu(shape.updates_wait, scaled);
  return lanes.times();
}

}  // namespace

// Times of the next step are sums and maxima of this one's, so that the steps settle to the longest mean of a round:
// over either time alone, or from one to the other and back in two steps.
std::int64_t chunked_step_ns(const std::vector<LayerTimes>& layers, const StepShape& shape, const ChunkPlan& plan) {
  CHECK(shape.passes >= 1, shape.passes);
  const ChunkPlan bounded{std::min(plan.persistent, layers.size()), std::max<std::size_t>(plan.buffers, 1)};
  const std::int64_t taken = std::min(shape.passes, kPasses);
  const Times from_device = after_step(layers, shape, bounded, taken, {.device_ns = 0, .cpu_ns = kLongAgo});
  const Times from_cpu = after_step(layers, shape, bounded, taken, {.device_ns = kLongAgo, .cpu_ns = 0});
  const std::int64_t settled =
      std::max({from_device.device_ns, from_cpu.cpu_ns, (from_device.cpu_ns + from_cpu.device_ns) / 2});
  CHECK(settled >= 0, "a step takes less than no time", settled);
  return settled / taken * shape.passes + settled % taken * shape.passes / taken;
}

}  // namespace tandem
