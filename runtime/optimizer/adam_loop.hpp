// Adam over a span, for any vector type; included by the files of the instruction sets alone.
//
// Ops is internal to its file, and so is all here that it is a parameter of. It names Number (float, or a vector of
// kElements floats with the functions of adam_formula.hpp) and Packed (as many 16-bit numbers), and has load, store,
// stream, encode, join, split and fence.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "runtime/optimizer/adam.hpp"
#include "runtime/optimizer/low_precision.hpp"

namespace tandem {

struct NoParameter {};

template <class Ops, class Gradient, class Parameter>
class AdamLoop {
 public:
  AdamLoop(const AdamStep& step, const AdamSpan& span)
      : step_(step),
        at_{static_cast<const Gradient*>(span.gradient),
            span.m,
            span.v,
            span.master,
            static_cast<Parameter*>(span.parameter),
            span.old_parameter,
            span.master_low},
        left_(span.elements),
        stream_(span.stream_parameter && span.parameter != span.old_parameter) {}

  // Whether all that it wrote is finite.
  bool run() {
    if (kWritesParameter && stream_ && reinterpret_cast<std::uintptr_t>(at_.parameter) % sizeof(Parameter) == 0) {
      run_streaming();
    } else {
      run_blocks<false>();
      partial_block(left_);
    }
    float watched[Ops::kElements];
    Ops::store(watched, watch_);
    for (const float watch : watched)
      if (!(watch == 0)) return false;
    return true;
  }

 private:
  using Number = typename Ops::Number;
  using Packed = typename Ops::Packed;
  static constexpr bool kWritesParameter = sizeof(Parameter) == 2;
  static constexpr float kLimit = std::is_same_v<Parameter, Float16> ? kFloat16Limit : 1;
  static constexpr bool kSplitsMaster = std::is_same_v<Parameter, BFloat16>;
  static constexpr std::int64_t kBlock = kChunkElements;  // a cache line of the 16-bit parameter

  struct Pointers {
    const Gradient* gradient;
    float *m, *v;
    float* master;                  // unless the master is split
    Parameter* parameter;           // if it is written
    const BFloat16* old_parameter;  // if the master is split, as is ...
    std::int16_t* master_low;
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
    for (; left_ >= kBlock; advance(kBlock)) {
      look_ahead();
      block<kStream>(at_);
    }
  }

  // Processors fetch ahead by themselves, but not from one page of memory into the next, which each operand enters
  // every 1,024 or 2,048 elements; and with six operands and copies of a device on the same memory not far enough.
  void look_ahead() const {
    fetch(at_.gradient);
    fetch(at_.m);
    fetch(at_.v);
    if constexpr (kSplitsMaster) {
      fetch(at_.old_parameter);
      fetch(at_.master_low);
    } else {
      fetch(at_.master);
    }
  }

  // The block that comes some blocks later; past the end it does no harm.
  template <class T>
  static void fetch(const T* at) {
    constexpr std::uintptr_t kAhead = 16 * kBlock * sizeof(T), kLine = 64;
    for (std::uintptr_t byte = 0; byte < kBlock * sizeof(T); byte += kLine)
      __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(at) + kAhead + byte));
  }

  void advance(std::int64_t elements) {
    at_.gradient += elements;
    at_.m += elements;
    at_.v += elements;
    if constexpr (kSplitsMaster) {
      at_.old_parameter += elements;
      at_.master_low += elements;
    } else {
      at_.master += elements;
    }
    if constexpr (kWritesParameter) at_.parameter += elements;
    left_ -= elements;
  }

  template <bool kStream>
  void block(const Pointers& at) {
    if constexpr (kWritesParameter) {
      Packed packed[kBlock / Ops::kElements];  // stored together: a whole line fills at once
#pragma GCC unroll 4
      for (int i = 0; i < kBlock; i += Ops::kElements) packed[i / Ops::kElements] = keep(at, i, updated(at, i));
#pragma GCC unroll 4
      for (int i = 0; i < kBlock; i += Ops::kElements)
        if constexpr (kStream)
          Ops::stream(at.parameter + i, packed[i / Ops::kElements]);
        else
          Ops::store(at.parameter + i, packed[i / Ops::kElements]);
    } else {
#pragma GCC unroll 4
      for (int i = 0; i < kBlock; i += Ops::kElements) Ops::store(at.master + i, updated(at, i));
    }
  }

  // The new masters.
  Number updated(const Pointers& at, int i) {
    AdamElement<Number> element{master(at, i), Ops::load(at.m + i), Ops::load(at.v + i)};
    adam_element(step_, Ops::load(at.gradient + i), element);
    Ops::store(at.m + i, element.m);
    Ops::store(at.v + i, element.v);
    watch_ = watch_finite(watch_, element.master, kLimit);
    watch_ = watch_finite(watch_, element.v, 1);
    return element.master;
  }

  static Number master(const Pointers& at, int i) {
    if constexpr (kSplitsMaster)
      return Ops::join(at.old_parameter + i, at.master_low + i);
    else
      return Ops::load(at.master + i);
  }

  // Stores masters, or what the parameters lack of them. Returns the parameters.
  static Packed keep(const Pointers& at, int i, Number masters) {
    if constexpr (kSplitsMaster) {
      const auto halves = Ops::split(masters);
      Ops::store(at.master_low + i, halves.low);
      return halves.parameter;
    } else {
      Ops::store(at.master + i, masters);
      return Ops::template encode<Parameter>(masters);
    }
  }

  // Fewer elements than a block, by way of one: the same instructions, so the same bits.
  void partial_block(std::int64_t elements) {
    if (elements == 0) return;
    Gradient gradient[kBlock] = {};
    float m[kBlock] = {}, v[kBlock] = {}, master[kBlock] = {};
    Parameter parameter[kBlock];
    BFloat16 old_parameter[kBlock] = {};
    std::int16_t master_low[kBlock] = {};
    const auto count = static_cast<std::size_t>(elements);
    std::memcpy(gradient, at_.gradient, count * sizeof(Gradient));
    std::memcpy(m, at_.m, count * sizeof(float));
    std::memcpy(v, at_.v, count * sizeof(float));
    if constexpr (kSplitsMaster) {
      std::memcpy(old_parameter, at_.old_parameter, count * sizeof(BFloat16));
      std::memcpy(master_low, at_.master_low, count * sizeof(std::int16_t));
    } else {
      std::memcpy(master, at_.master, count * sizeof(float));
    }
    block<false>({gradient, m, v, master, parameter, old_parameter, master_low});
    std::memcpy(at_.m, m, count * sizeof(float));
    std::memcpy(at_.v, v, count * sizeof(float));
    if constexpr (kSplitsMaster)
      std::memcpy(at_.master_low, master_low, count * sizeof(std::int16_t));
    else
      std::memcpy(at_.master, master, count * sizeof(float));
    if constexpr (kWritesParameter) std::memcpy(at_.parameter, parameter, count * sizeof(Parameter));
    advance(elements);
  }

  const AdamStep step_;
  Pointers at_;
  std::int64_t left_;
  bool stream_;
  Number watch_{0.0F};
};

template <class Ops, class Gradient>
bool adam_from(const AdamStep& step, const AdamSpan& span) {
  if (span.parameter_type == DType::BF16) return AdamLoop<Ops, Gradient, BFloat16>(step, span).run();
  if (span.parameter_type == DType::F16) return AdamLoop<Ops, Gradient, Float16>(step, span).run();
  return AdamLoop<Ops, Gradient, NoParameter>(step, span).run();
}

template <class Ops>
bool adam_kernel(const AdamStep& step, const AdamSpan& span) {
  if (span.gradient_type == DType::BF16) return adam_from<Ops, BFloat16>(step, span);
  if (span.gradient_type == DType::F16) return adam_from<Ops, Float16>(step, span);
  return adam_from<Ops, float>(step, span);
}

}  // namespace tandem
