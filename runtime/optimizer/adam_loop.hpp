// Adam over a span, for any vector type; included by the files of the instruction sets alone.
//
// Ops is internal to its file, and so is all here that it is a parameter of. It names Number (float, or a vector of
// kElements floats with the functions of adam_formula.hpp) and Packed (as many 16-bit numbers), and has load, store,
// stream, encode and fence.
#pragma once

#include <cstdint>
#include <cstring>

#include "runtime/optimizer/adam.hpp"
#include "runtime/optimizer/low_precision.hpp"

namespace tandem {

struct NoParameter {};

template <class Ops, class Gradient, class Parameter>
class AdamLoop {
 public:
  AdamLoop(const AdamStep& step, const AdamSpan& span)
      : step_(step),
        at_{static_cast<const Gradient*>(span.gradient), span.master, span.m, span.v,
            static_cast<Parameter*>(span.parameter)},
        left_(span.elements),
        stream_(span.stream_parameter) {}

  void run() {
    if constexpr (kWritesParameter)
      if (stream_ && reinterpret_cast<std::uintptr_t>(at_.parameter) % sizeof(Parameter) == 0) return run_streaming();
    run_blocks<false>();
    partial_block(left_);
  }

 private:
  using Number = typename Ops::Number;
  static constexpr bool kWritesParameter = sizeof(Parameter) == 2;
  static constexpr std::int64_t kBlock = kChunkElements;  // a cache line of the 16-bit parameter

  struct Pointers {
    const Gradient* gradient;
    float *master, *m, *v;
    Parameter* parameter;
  };

  // Streamed lines of the parameter are neither read first nor kept in cache. Where it does not begin at a line, the
  // elements before the first line go ahead.
  void run_streaming() {
    const auto past = reinterpret_cast<std::uintptr_t>(at_.parameter) / sizeof(Parameter) % kBlock;
    const auto ahead = static_cast<std::int64_t>(past == 0 ? 0 : kBlock - past);
    partial_block(ahead < left_ ? ahead : left_);
    run_blocks<true>();
    Ops::fence();  // streamed stores become visible in no order with what this thread writes next
    partial_block(left_);
  }

  template <bool kStream>
  void run_blocks() {
    for (; left_ >= kBlock; advance(kBlock)) block<kStream>(at_);
  }

  void advance(std::int64_t elements) {
    at_.gradient += elements;
    at_.master += elements;
    at_.m += elements;
    at_.v += elements;
    if constexpr (kWritesParameter) at_.parameter += elements;
    left_ -= elements;
  }

  template <bool kStream>
  void block(const Pointers& at) const {
    if constexpr (kWritesParameter) {
      typename Ops::Packed packed[kBlock / Ops::kElements];  // stored together: a whole line fills at once
#pragma GCC unroll 4
      for (int i = 0; i < kBlock; i += Ops::kElements)
        packed[i / Ops::kElements] = Ops::template encode<Parameter>(updated(at, i));
#pragma GCC unroll 4
      for (int i = 0; i < kBlock; i += Ops::kElements)
        if constexpr (kStream)
          Ops::stream(at.parameter + i, packed[i / Ops::kElements]);
        else
          Ops::store(at.parameter + i, packed[i / Ops::kElements]);
    } else {
#pragma GCC unroll 4
      for (int i = 0; i < kBlock; i += Ops::kElements) updated(at, i);
    }
  }

  Number updated(const Pointers& at, int i) const {
    AdamElement<Number> element{Ops::load(at.master + i), Ops::load(at.m + i), Ops::load(at.v + i)};
    adam_element(step_, Ops::load(at.gradient + i), element);
    Ops::store(at.m + i, element.m);
    Ops::store(at.v + i, element.v);
    Ops::store(at.master + i, element.master);
    return element.master;
  }

  // Fewer elements than a block, by way of one: the same instructions, so the same bits.
  void partial_block(std::int64_t elements) {
    if (elements == 0) return;
    Gradient gradient[kBlock] = {};
    float master[kBlock] = {}, m[kBlock] = {}, v[kBlock] = {};
    Parameter parameter[kBlock];
    const auto count = static_cast<std::size_t>(elements);
    std::memcpy(gradient, at_.gradient, count * sizeof(Gradient));
    std::memcpy(master, at_.master, count * sizeof(float));
    std::memcpy(m, at_.m, count * sizeof(float));
    std::memcpy(v, at_.v, count * sizeof(float));
    block<false>({gradient, master, m, v, parameter});
    std::memcpy(at_.master, master, count * sizeof(float));
    std::memcpy(at_.m, m, count * sizeof(float));
    std::memcpy(at_.v, v, count * sizeof(float));
    if constexpr (kWritesParameter) std::memcpy(at_.parameter, parameter, count * sizeof(Parameter));
    advance(elements);
  }

  const AdamStep step_;
  Pointers at_;
  std::int64_t left_;
  bool stream_;
};

template <class Ops, class Gradient>
void adam_from(const AdamStep& step, const AdamSpan& span) {
  if (span.parameter == nullptr)
    AdamLoop<Ops, Gradient, NoParameter>(step, span).run();
  else if (span.parameter_type == DType::BF16)
    AdamLoop<Ops, Gradient, BFloat16>(step, span).run();
  else
    AdamLoop<Ops, Gradient, Float16>(step, span).run();
}

template <class Ops>
void adam_kernel(const AdamStep& step, const AdamSpan& span) {
  if (span.gradient_type == DType::BF16)
    adam_from<Ops, BFloat16>(step, span);
  else if (span.gradient_type == DType::F16)
    adam_from<Ops, Float16>(step, span);
  else
    adam_from<Ops, float>(step, span);
}

}  // namespace tandem
