// Where a GPU's update kernels find the fp32 master parameters, by the parameter's type. Included by those kernels
// alone.
#pragma once

#include "runtime/optimizer/low_precision.hpp"
#include "runtime/optimizer/update.hpp"

namespace tandem {

template <class Number, int kCount>
struct alignas(kCount * sizeof(Number)) Pack {
  Number at[kCount];
};

// A parameter of 16 bits that has no fp32 master.
template <class T>
struct Alone {};

template <class Parameter>
inline constexpr bool is_float16 = false;
template <>
inline constexpr bool is_float16<Float16> = true;
template <>
inline constexpr bool is_float16<Alone<Float16>> = true;

template <int kCount, class Number>
__device__ Pack<Number, kCount> load(const Number* from) {
  return *reinterpret_cast<const Pack<Number, kCount>*>(from);
}
template <int kCount, class Number>
__device__ void store(const Pack<Number, kCount>& pack, Number* to) {
  *reinterpret_cast<Pack<Number, kCount>*>(to) = pack;
}

// Where an update leaves the mark of a number that is not finite (UpdateSpan::not_finite): memory of the host, which is
// written only then. Of several, any.
template <class Parameter>
struct Watch {
  std::int64_t* mark;
  std::int64_t first;  // element of the bucket

  explicit Watch(const UpdateSpan& span) : mark(span.not_finite), first(span.first_element) {}
  __device__ void see(std::int64_t i, float master, float moment) const {
    constexpr float kLimit = is_float16<Parameter> ? kFloat16Limit : 1;
    const float watch = watch_finite(watch_finite(0.0F, master, kLimit), moment, 1.0F);
    if (watch != 0 && mark != nullptr) *mark = 1 + first + i;
  }
};

// keep() is a skipped step: the new parameters are as before.
template <class Parameter>
struct Masters;

template <>
struct Masters<float> {
  float* master;

  explicit Masters(const UpdateSpan& span) : master(span.master) {}
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

  explicit Masters(const UpdateSpan& span) : master(span.master), parameter(static_cast<Float16*>(span.parameter)) {}
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

  explicit Masters(const UpdateSpan& span)
      : old_parameter(static_cast<const BFloat16*>(span.old_parameter)),
        parameter(static_cast<BFloat16*>(span.parameter)),
        low(span.master_low) {}
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

__device__ inline void round_to(BFloat16& to, float number) { to = split_master(number).parameter; }
__device__ inline void round_to(Float16& to, float number) { to = to_float16(number); }

template <class T>
struct Masters<Alone<T>> {
  const T* old_parameter;
  T* parameter;

  explicit Masters(const UpdateSpan& span)
      : old_parameter(static_cast<const T*>(span.old_parameter)), parameter(static_cast<T*>(span.parameter)) {}
  template <int kCount>
  __device__ Pack<float, kCount> masters(std::int64_t i) const {
    const auto stored = load<kCount>(old_parameter + i);
    Pack<float, kCount> masters;
    for (int k = 0; k < kCount; ++k) masters.at[k] = to_float(stored.at[k]);
    return masters;
  }
  template <int kCount>
  __device__ void write(std::int64_t i, const Pack<float, kCount>& masters) const {
    Pack<T, kCount> rounded;
    for (int k = 0; k < kCount; ++k) round_to(rounded.at[k], masters.at[k]);
    store(rounded, parameter + i);
  }
  __device__ void keep(std::int64_t i) const {
    if (parameter != old_parameter) parameter[i] = old_parameter[i];
  }
};

// Calls launch.template operator()<gradient's type, parameter's type>() for those of a span: gradients are in fp32, or
// of the parameter's type.
template <class Launch>
void with_types(const UpdateSpan& span, const Launch& launch) {
  const auto with_gradient = [&]<class Own, class Parameter>() {
    if (span.gradient_type == DType::F32) return launch.template operator()<float, Parameter>();
    launch.template operator()<Own, Parameter>();
  };
  if (span.parameter_type == DType::F32) return launch.template operator()<float, float>();
  if (span.parameter_type == DType::BF16)
    return span.masters ? with_gradient.template operator()<BFloat16, BFloat16>()
                        : with_gradient.template operator()<BFloat16, Alone<BFloat16>>();
  span.masters ? with_gradient.template operator()<Float16, Float16>()
               : with_gradient.template operator()<Float16, Alone<Float16>>();
}

}  // namespace tandem
