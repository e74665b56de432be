// Updates on the GPU: one pass over memory, four elements a thread, the formulas that the CPU computes.
#include "runtime/cuda/kernels.hpp"
#include "runtime/cuda/masters.cuh"
#include "runtime/optimizer/rules/rules.hpp"

namespace tandem {
namespace {

constexpr int kElements = 4, kThreads = 256;

// One moment's numbers, which a rule may not have.
template <class Moment>
struct Moments {
  Moment *m, *v;

  template <int kCount>
  static __device__ Pack<float, kCount> read(const Moment* from, std::int64_t i) {
    const auto stored = load<kCount>(from + i);
    Pack<float, kCount> numbers;
    for (int k = 0; k < kCount; ++k) numbers.at[k] = to_float(stored.at[k]);
    return numbers;
  }
  template <int kCount>
  static __device__ void write(const Pack<float, kCount>& numbers, Moment* to, std::int64_t i) {
    Pack<Moment, kCount> stored;
    for (int k = 0; k < kCount; ++k) {
      if constexpr (sizeof(Moment) == sizeof(float))
        stored.at[k] = numbers.at[k];
      else
        round_to(stored.at[k], numbers.at[k]);
    }
    store(stored, to + i);
  }
};

// Elements [i, i + kCount).
template <class OfRule, int kCount, class Moment, class Gradient, class Parameter>
__device__ void update(const UpdateStep& step, std::int64_t i, const Gradient* gradient, Moments<Moment> moments,
                       const Masters<Parameter>& masters, const Watch<Parameter>& watch) {
  using Of = Moments<Moment>;
  const auto g = load<kCount>(gradient + i);
  Pack<float, kCount> a = masters.template masters<kCount>(i), m = {}, v = {};
  if constexpr (OfRule::kMoments > 0) m = Of::template read<kCount>(moments.m, i);
  if constexpr (OfRule::kMoments > 1) v = Of::template read<kCount>(moments.v, i);
  for (int k = 0; k < kCount; ++k) {
    UpdatedElement<float> element{a.at[k], m.at[k], v.at[k]};
    OfRule::update(step, to_float(g.at[k]), element);
    a.at[k] = element.master, m.at[k] = element.m, v.at[k] = element.v;
    watch.see(i + k, element.master, OfRule::kMoments > 1 ? element.v : element.m);
  }
  if constexpr (OfRule::kMoments > 0) Of::write(m, moments.m, i);
  if constexpr (OfRule::kMoments > 1) Of::write(v, moments.v, i);
  masters.write(i, a);
}

template <class OfRule, class Moment, class Gradient, class Parameter>
__global__ void update_kernel(UpdateStep step, const UpdateControl* control, const Gradient* gradient,
                              Moments<Moment> moments, Masters<Parameter> masters, Watch<Parameter> watch,
                              std::int64_t elements) {
  const std::int64_t first = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kElements;
  const std::int64_t end = first + kElements < elements ? first + kElements : elements;
  if (control != nullptr) {
    step = controlled(step, *control);
    if (control->gradient_scale == 0) {
      for (std::int64_t i = first; i < end; ++i) masters.keep(i);
      return;
    }
  }
  if (end == first + kElements) return update<OfRule, kElements>(step, first, gradient, moments, masters, watch);
  for (std::int64_t i = first; i < end; ++i) update<OfRule, 1>(step, i, gradient, moments, masters, watch);
}

template <class OfRule, class Moment>
void launch(const UpdateStep& step, const UpdateSpan& span, const UpdateControl* control, cudaStream_t stream) {
  constexpr std::int64_t kBlock = kElements * kThreads;
  const auto blocks = static_cast<unsigned>((span.elements + kBlock - 1) / kBlock);
  with_types(span, [&]<class Gradient, class Parameter>() {
    update_kernel<OfRule>
        <<<blocks, kThreads, 0, stream>>>(step, control, static_cast<const Gradient*>(span.gradient),
                                          Moments<Moment>{static_cast<Moment*>(span.m), static_cast<Moment*>(span.v)},
                                          Masters<Parameter>(span), Watch<Parameter>(span), span.elements);
  });
}

}  // namespace

void launch_update(const UpdateStep& step, const UpdateSpan& span, const UpdateControl* control, cudaStream_t stream) {
  if (span.elements == 0) return;
  if (span.state_bits < 16) return launch_quantised_update(step, span, control, stream);
  with_rule(step.rule, [&]<class OfRule>() {
    if constexpr (OfRule::kMoments > 0)
      if (span.state_bits == 16) return launch<OfRule, BFloat16>(step, span, control, stream);
    launch<OfRule, float>(step, span, control, stream);
  });
}

}  // namespace tandem
