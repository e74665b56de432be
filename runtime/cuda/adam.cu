// Adam on the GPU: one pass over memory, four elements a thread, the formula that the CPU computes.
#include "runtime/cuda/kernels.hpp"
#include "runtime/cuda/masters.cuh"

namespace tandem {
namespace {

constexpr int kElements = 4, kThreads = 256;

// Elements [i, i + kCount).
template <int kCount, class Gradient, class Parameter>
__device__ void update(const AdamStep& step, std::int64_t i, const Gradient* gradient, float* m, float* v,
                       const Masters<Parameter>& masters, const Watch<Parameter>& watch) {
  const auto g = load<kCount>(gradient + i);
  Pack<float, kCount> a = masters.template masters<kCount>(i), b = load<kCount>(m + i), c = load<kCount>(v + i);
  for (int k = 0; k < kCount; ++k) {
    AdamElement<float> element{a.at[k], b.at[k], c.at[k]};
    adam_element(step, to_float(g.at[k]), element);
    a.at[k] = element.master, b.at[k] = element.m, c.at[k] = element.v;
    watch.see(i + k, element.master, element.v);
  }
  store(b, m + i);
  store(c, v + i);
  masters.write(i, a);
}

template <class Gradient, class Parameter>
__global__ void adam_kernel(AdamStep step, const UpdateControl* control, const Gradient* gradient, float* m, float* v,
                            Masters<Parameter> masters, Watch<Parameter> watch, std::int64_t elements) {
  const std::int64_t first = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kElements;
  const std::int64_t end = first + kElements < elements ? first + kElements : elements;
  if (control != nullptr) {
    step = controlled(step, *control);
    if (control->gradient_scale == 0) {
      for (std::int64_t i = first; i < end; ++i) masters.keep(i);
      return;
    }
  }
  if (end == first + kElements) return update<kElements>(step, first, gradient, m, v, masters, watch);
  for (std::int64_t i = first; i < end; ++i) update<1>(step, i, gradient, m, v, masters, watch);
}

template <class Gradient, class Parameter>
void launch(const AdamStep& step, const AdamSpan& span, const UpdateControl* control, cudaStream_t stream) {
  constexpr std::int64_t kBlock = kElements * kThreads;
  const auto blocks = static_cast<unsigned>((span.elements + kBlock - 1) / kBlock);
  adam_kernel<<<blocks, kThreads, 0, stream>>>(step, control, static_cast<const Gradient*>(span.gradient), span.m,
                                               span.v, Masters<Parameter>(span), Watch<Parameter>(span), span.elements);
}

template <class Gradient>
void launch_for(const AdamStep& step, const AdamSpan& span, const UpdateControl* control, cudaStream_t stream) {
  if (span.parameter_type == DType::BF16) return launch<Gradient, BFloat16>(step, span, control, stream);
  if (span.parameter_type == DType::F16) return launch<Gradient, Float16>(step, span, control, stream);
  launch<Gradient, float>(step, span, control, stream);
}

}  // namespace

void launch_adam(const AdamStep& step, const AdamSpan& span, const UpdateControl* control, cudaStream_t stream) {
  if (span.elements == 0) return;
  if (span.state_bits != 32) return launch_quantised_adam(step, span, control, stream);
  if (span.gradient_type == DType::F32) return launch_for<float>(step, span, control, stream);
  if (span.gradient_type == DType::F16) return launch_for<Float16>(step, span, control, stream);
  launch_for<BFloat16>(step, span, control, stream);
}

}  // namespace tandem
