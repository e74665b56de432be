// Updates of a span by any rule, for any vector type; included by the files of the instruction sets alone.
//
// Ops is internal to its file, and so is all here that it is a parameter of. It names Number (float, or a vector of
// kElements floats with the functions of update_formula.hpp) and Packed (as many 16-bit numbers), and has load, store,
// stream, encode, join, split and fence.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "runtime/optimizer/low_precision.hpp"
#include "runtime/optimizer/rules/rules.hpp"
#include "runtime/optimizer/update.hpp"

namespace tandem {

struct NoParameter {};

// A parameter of 16 bits that has no fp32 master: it is read, and rounded once it is updated.
template <class T>
struct Alone {
  T number;
};
template <class Parameter>
struct StoredAs {
  using Type = Parameter;
  static constexpr bool kAlone = false;
};
template <class T>
struct StoredAs<Alone<T>> {
  using Type = T;
  static constexpr bool kAlone = true;
};

// Moment: float or BFloat16.
template <class Ops, class OfRule, class Moment, class Gradient, class Parameter>
class UpdateLoop {
 public:
  UpdateLoop(const UpdateStep& step, const UpdateSpan& span)
      : step_(step),
        at_{static_cast<const Gradient*>(span.gradient),
            static_cast<Moment*>(span.m),
            static_cast<Moment*>(span.v),
            span.master,
            static_cast<Stored*>(span.parameter),
            static_cast<const Stored*>(span.old_parameter),
            span.master_low},
        left_(span.elements),
        stream_(span.stream_parameter && span.parameter != span.old_parameter) {}

  // Whether all that it wrote is finite.
  bool run() {
    if (kWritesParameter && stream_ && reinterpret_cast<std::uintptr_t>(at_.parameter) % sizeof(Stored) == 0) {
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
  using Stored = typename StoredAs<Parameter>::Type;
  static constexpr bool kHasM = OfRule::kMoments > 0, kHasV = OfRule::kMoments > 1;
  static constexpr bool kWritesParameter = sizeof(Stored) == 2;
  static constexpr float kLimit = std::is_same_v<Stored, Float16> ? kFloat16Limit : 1;
  static constexpr bool kAlone = StoredAs<Parameter>::kAlone;
  static constexpr bool kSplitsMaster = !kAlone && std::is_same_v<Parameter, BFloat16>;
  static constexpr bool kReadsParameter = kAlone || kSplitsMaster;
  static constexpr std::int64_t kBlock = kChunkElements;  // a cache line of the 16-bit parameter

  struct Pointers {
    const Gradient* gradient;
    Moment *m, *v;                // those that the rule has
    float* master;                // unless the parameter is read
    Stored* parameter;            // if it is written
    const Stored* old_parameter;  // if it is read
    std::int16_t* master_low;     // if the master is split
  };

  // Streamed lines of the parameter are neither read first nor kept in cache. Where it does not begin at a line, the
  // elements before the first line go ahead.
  void run_streaming() {
    const auto past = reinterpret_cast<std::uintptr_t>(at_.parameter) / sizeof(Stored) % kBlock;
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
    if constexpr (kHasM) fetch(at_.m);
    if constexpr (kHasV) fetch(at_.v);
    if constexpr (kReadsParameter) fetch(at_.old_parameter);
    if constexpr (kSplitsMaster) fetch(at_.master_low);
    if constexpr (!kReadsParameter) fetch(at_.master);
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
    if constexpr (kHasM) at_.m += elements;
    if constexpr (kHasV) at_.v += elements;
    if constexpr (kReadsParameter) at_.old_parameter += elements;
    if constexpr (kSplitsMaster) at_.master_low += elements;
    if constexpr (!kReadsParameter) at_.master += elements;
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
    UpdatedElement<Number> element{master(at, i), Number(0.0F), Number(0.0F)};
    if constexpr (kHasM) element.m = Ops::load(at.m + i);
    if constexpr (kHasV) element.v = Ops::load(at.v + i);
    OfRule::update(step_, Ops::load(at.gradient + i), element);
    if constexpr (kHasM) keep_moment(at.m + i, element.m);
    if constexpr (kHasV) keep_moment(at.v + i, element.v);
    watch_ = watch_finite(watch_, element.master, kLimit);
    if constexpr (kHasM) watch_ = watch_finite(watch_, kHasV ? element.v : element.m, 1);
    return element.master;
  }

  // bf16: rounded to nearest, ties away from zero, as parameters are.
  static void keep_moment(Moment* to, Number moment) {
    if constexpr (std::is_same_v<Moment, BFloat16>)
      Ops::store(to, Ops::split(moment).parameter);
    else
      Ops::store(to, moment);
  }

  static Number master(const Pointers& at, int i) {
    if constexpr (kSplitsMaster)
      return Ops::join(at.old_parameter + i, at.master_low + i);
    else if constexpr (kAlone)
      return Ops::load(at.old_parameter + i);
    else
      return Ops::load(at.master + i);
  }

  // Stores masters, or what the parameters lack of them. Returns the parameters.
  static Packed keep(const Pointers& at, int i, Number masters) {
    if constexpr (kSplitsMaster) {
      const auto halves = Ops::split(masters);
      Ops::store(at.master_low + i, halves.low);
      return halves.parameter;
    } else if constexpr (kAlone && std::is_same_v<Stored, BFloat16>) {
      return Ops::split(masters).parameter;
    } else {
      if constexpr (!kAlone) Ops::store(at.master + i, masters);
      return Ops::template encode<Stored>(masters);
    }
  }

  // Fewer elements than a block, by way of one: the same instructions, so the same bits.
  void partial_block(std::int64_t elements) {
    if (elements == 0) return;
    Gradient gradient[kBlock] = {};
    Moment m[kBlock] = {}, v[kBlock] = {};
    float master[kBlock] = {};
    Stored parameter[kBlock], old_parameter[kBlock] = {};
    std::int16_t master_low[kBlock] = {};
    const auto count = static_cast<std::size_t>(elements);
    std::memcpy(gradient, at_.gradient, count * sizeof(Gradient));
    if constexpr (kHasM) std::memcpy(m, at_.m, count * sizeof(Moment));
    if constexpr (kHasV) std::memcpy(v, at_.v, count * sizeof(Moment));
    if constexpr (kReadsParameter) std::memcpy(old_parameter, at_.old_parameter, count * sizeof(Stored));
    if constexpr (kSplitsMaster) std::memcpy(master_low, at_.master_low, count * sizeof(std::int16_t));
    if constexpr (!kReadsParameter) std::memcpy(master, at_.master, count * sizeof(float));
    block<false>({gradient, m, v, master, parameter, old_parameter, master_low});
    if constexpr (kHasM) std::memcpy(at_.m, m, count * sizeof(Moment));
    if constexpr (kHasV) std::memcpy(at_.v, v, count * sizeof(Moment));
    if constexpr (kSplitsMaster) std::memcpy(at_.master_low, master_low, count * sizeof(std::int16_t));
    if constexpr (!kReadsParameter) std::memcpy(at_.master, master, count * sizeof(float));
    if constexpr (kWritesParameter) std::memcpy(at_.parameter, parameter, count * sizeof(Stored));
    advance(elements);
  }

  const UpdateStep step_;
  Pointers at_;
  std::int64_t left_;
  bool stream_;
  Number watch_{0.0F};
};

template <class Ops, class OfRule, class Moment, class Gradient>
bool update_from(const UpdateStep& step, const UpdateSpan& span) {
  const auto run = [&]<class Parameter>() {
    return UpdateLoop<Ops, OfRule, Moment, Gradient, Parameter>(step, span).run();
  };
  if (span.parameter_type == DType::F32) return run.template operator()<NoParameter>();
  if (span.parameter_type == DType::BF16)
    return span.masters ? run.template operator()<BFloat16>() : run.template operator()<Alone<BFloat16>>();
  return span.masters ? run.template operator()<Float16>() : run.template operator()<Alone<Float16>>();
}

template <class Ops, class OfRule, class Moment>
bool update_by(const UpdateStep& step, const UpdateSpan& span) {
  if (span.gradient_type == DType::BF16) return update_from<Ops, OfRule, Moment, BFloat16>(step, span);
  if (span.gradient_type == DType::F16) return update_from<Ops, OfRule, Moment, Float16>(step, span);
  return update_from<Ops, OfRule, Moment, float>(step, span);
}

// Of fp32 moments, or of bf16 ones.
template <class Ops>
bool update_kernel(const UpdateStep& step, const UpdateSpan& span) {
  return with_rule(step.rule, [&]<class OfRule>() {
    if (OfRule::kMoments > 0 && span.state_bits == 16) return update_by<Ops, OfRule, BFloat16>(step, span);
    return update_by<Ops, OfRule, float>(step, span);
  });
}

}  // namespace tandem
