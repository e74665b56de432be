// Adam on the GPU: one pass over memory, four elements a thread, the formula that the CPU computes.
#include "runtime/cuda/kernels.hpp"
#include "runtime/optimizer/low_precision.hpp"

namespace tandem {
namespace {

constexpr int kElements = 4, kThreads = 256;

template <class Number, int kCount>
struct alignas(kCount * sizeof(Number)) Pack {
  Number at[kCount];
};

template <int kCount, class Number>
__device__ Pack<Number, kCount> load(const Number* from) {
  return *reinterpret_cast<const Pack<Number, kCount>*>(from);
}
template <int kCount, class Number>
__device__ void store(const Pack<Number, kCount>& pack, Number* to) {
  *reinterpret_cast<Pack<Number, kCount>*>(to) = pack;
}

// Where the master parameters are, by the parameter's type. keep() is a skipped step: the new parameters are as before.

template <class Parameter>
struct Masters;

template <>
struct Masters<float> {
  float* master;

  explicit Masters(const AdamSpan& span) : master(span.master) {}
  template <int kCount>
  __device__ Pack<float, kCount> masters(std::int64_t i) const {
    return load<kCount>(master + i);
  }
  template <int kCount>
  __device__ void write(std::int64_t i, const Pack<float, kCount>& masters) const {
    store(masters, master + i);
  }
  __device__ void keep(std::int64_t) const {}
};

template <>
struct Masters<Float16> {
  float* master;
  Float16* parameter;

  explicit Masters(const AdamSpan& span) : master(span.master), parameter(static_cast<Float16*>(span.parameter)) {}
  template <int kCount>
  __device__ Pack<float, kCount> masters(std::int64_t i) const {
    return load<kCount>(master + i);
  }
  template <int kCount>
  __device__ void write(std::int64_t i, const Pack<float, kCount>& masters) const {
    Pack<Float16, kCount> rounded;
    for (int k = 0; k < kCount; ++k) rounded.at[k] = to_float16(masters.at[k]);
    store(masters, master + i);
    store(rounded, parameter + i);
  }
  __device__ void keep(std::int64_t i) const { parameter[i] = to_float16(master[i]); }
};

template <>
struct Masters<BFloat16> {
  const BFloat16* old_parameter;
  BFloat16* parameter;
  std::int16_t* low;

  explicit Masters(const AdamSpan& span)
      : old_parameter(span.old_parameter), parameter(static_cast<BFloat16*>(span.parameter)), low(span.master_low) {}
  template <int kCount>
  __device__ Pack<float, kCount> masters(std::int64_t i) const {
    const auto upper = load<kCount>(old_parameter + i);
    const auto lower = load<kCount>(low + i);
    Pack<float, kCount> masters;
    for (int k = 0; k < kCount; ++k) masters.at[k] = join_master({upper.at[k], lower.at[k]});
    return masters;
  }
  template <int kCount>
  __device__ void write(std::int64_t i, const Pack<float, kCount>& masters) const {
    Pack<BFloat16, kCount> upper;
    Pack<std::int16_t, kCount> lower;
    for (int k = 0; k < kCount; ++k) {
      const SplitMaster halves = split_master(masters.at[k]);
      upper.at[k] = halves.parameter, lower.at[k] = halves.low;
    }
    store(upper, parameter + i);
    store(lower, low + i);
  }
  __device__ void keep(std::int64_t i) const {
    if (parameter != old_parameter) parameter[i] = old_parameter[i];
  }
};

// Elements [i, i + kCount).
template <int kCount, class Gradient, class Parameter>
__device__ void update(const AdamStep& step, std::int64_t i, const Gradient* gradient, float* m, float* v,
                       const Masters<Parameter>& masters) {
  const auto g = load<kCount>(gradient + i);
  Pack<float, kCount> a = masters.template masters<kCount>(i), b = load<kCount>(m + i), c = load<kCount>(v + i);
  for (int k = 0; k < kCount; ++k) {
    AdamElement<float> element{a.at[k], b.at[k], c.at[k]};
    adam_element(step, to_float(g.at[k]), element);
    a.at[k] = element.master, b.at[k] = element.m, c.at[k] = element.v;
  }
  store(b, m + i);
  store(c, v + i);
  masters.write(i, a);
}

template <class Gradient, class Parameter>
__global__ void adam_kernel(AdamStep step, const UpdateControl* control, const Gradient* gradient, float* m, float* v,
                            Masters<Parameter> masters, std::int64_t elements) {
  const std::int64_t first = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kElements;
  const std::int64_t end = first + kElements < elements ? first + kElements : elements;
  if (control != nullptr) {
    step = controlled(step, *control);
    if (control->gradient_scale == 0) {
      for (std::int64_t i = first; i < end; ++i) masters.keep(i);
      return;
    }
  }
  if (end == first + kElements) return update<kElements>(step, first, gradient, m, v, masters);
  for (std::int64_t i = first; i < end; ++i) update<1>(step, i, gradient, m, v, masters);
}

template <class Gradient, class Parameter>
void launch(const AdamStep& step, const AdamSpan& span, const UpdateControl* control, cudaStream_t stream) {
  constexpr std::int64_t kBlock = kElements * kThreads;
  const auto blocks = static_cast<unsigned>((span.elements + kBlock - 1) / kBlock);
  adam_kernel<<<blocks, kThreads, 0, stream>>>(step, control, static_cast<const Gradient*>(span.gradient), span.m,
                                               span.v, Masters<Parameter>(span), span.elements);
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
  if (span.gradient_type == DType::F32) return launch_for<float>(step, span, control, stream);
  if (span.gradient_type == DType::F16) return launch_for<Float16>(step, span, control, stream);
  launch_for<BFloat16>(step, span, control, stream);
}

}  // namespace tandem
