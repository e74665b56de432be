// Adam on the GPU: one pass over memory, four elements a thread, the formula that the CPU computes.
#include "runtime/cuda/kernels.hpp"
#include "runtime/optimizer/low_precision.hpp"

namespace tandem {
namespace {

constexpr int kElements = 4, kThreads = 256;

template <class Number>
struct alignas(kElements * sizeof(Number)) Quad {
  Number at[kElements];
};

__device__ void store(float x, float& to) { to = x; }
__device__ void store(float x, BFloat16& to) { to = to_bfloat16(x); }
__device__ void store(float x, Float16& to) { to = to_float16(x); }

template <class Gradient, class Parameter>
__device__ void update(const AdamStep& step, Gradient gradient, float& master, float& m, float& v,
                       Parameter& parameter) {
  AdamElement<float> element{master, m, v};
  adam_element(step, to_float(gradient), element);
  master = element.master, m = element.m, v = element.v;
  store(master, parameter);
}

// A skipped step: the parameter is the master's rounding, as before.
template <class Parameter>
__device__ void keep_master(std::int64_t first, const float* master, Parameter* parameter, std::int64_t elements) {
  if (parameter == nullptr) return;
  const std::int64_t end = first + kElements < elements ? first + kElements : elements;
  for (std::int64_t i = first; i < end; ++i) store(master[i], parameter[i]);
}

template <class Gradient, class Parameter>
__global__ void adam_kernel(AdamStep step, const UpdateControl* control, const Gradient* gradient, float* master, float* m,
                            float* v, Parameter* parameter, std::int64_t elements) {
  const std::int64_t first = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kElements;
  if (control != nullptr) {
    step = controlled(step, *control);
    if (control->gradient_scale == 0) return keep_master(first, master, parameter, elements);
  }
  if (first + kElements <= elements) {
    const auto g = *reinterpret_cast<const Quad<Gradient>*>(gradient + first);
    auto& states = *reinterpret_cast<Quad<float>*>(master + first);
    auto& first_moment = *reinterpret_cast<Quad<float>*>(m + first);
    auto& second_moment = *reinterpret_cast<Quad<float>*>(v + first);
    Quad<float> a = states, b = first_moment, c = second_moment;
    Quad<Parameter> out;
    for (int i = 0; i < kElements; ++i) update(step, g.at[i], a.at[i], b.at[i], c.at[i], out.at[i]);
    states = a, first_moment = b, second_moment = c;
    if (parameter != nullptr) *reinterpret_cast<Quad<Parameter>*>(parameter + first) = out;
    return;
  }
  for (std::int64_t i = first; i < elements; ++i) {
    Parameter out;
    update(step, gradient[i], master[i], m[i], v[i], out);
    if (parameter != nullptr) parameter[i] = out;
  }
}

template <class Gradient, class Parameter>
void launch(const AdamStep& step, const AdamSpan& span, const UpdateControl* control, cudaStream_t stream) {
  constexpr std::int64_t kBlock = kElements * kThreads;
  const auto blocks = static_cast<unsigned>((span.elements + kBlock - 1) / kBlock);
  adam_kernel<<<blocks, kThreads, 0, stream>>>(step, control, static_cast<const Gradient*>(span.gradient),
                                               span.master, span.m, span.v, static_cast<Parameter*>(span.parameter),
                                               span.elements);
}

template <class Gradient>
void launch_for(const AdamStep& step, const AdamSpan& span, const UpdateControl* control, cudaStream_t stream) {
  if (span.parameter == nullptr) return launch<Gradient, float>(step, span, control, stream);
  if (span.parameter_type == DType::F16) return launch<Gradient, Float16>(step, span, control, stream);
  launch<Gradient, BFloat16>(step, span, control, stream);
}

}  // namespace

void launch_adam(const AdamStep& step, const AdamSpan& span, const UpdateControl* control, cudaStream_t stream) {
  if (span.elements == 0) return;
  if (span.gradient_type == DType::F32) return launch_for<float>(step, span, control, stream);
  if (span.gradient_type == DType::F16) return launch_for<Float16>(step, span, control, stream);
  launch_for<BFloat16>(step, span, control, stream);
}

}  // namespace tandem
