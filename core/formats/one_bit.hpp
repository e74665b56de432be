// 1-bit Adam (Tang et al., ICML 2021, arXiv 2102.02888; DeepSpeed): the method, and how what travels is laid out. Must
// not know policies or machines.
//
// The first `warmup_steps` are plain Adam's. Then its variance v is frozen, and of the momentum m only signs travel,
// with a scale for each block of numbers: the mean of their magnitudes. Compressing on the device what the CPU updates
// by, step t is
//   compress  u = b1 s + (1 - b1) g + e            s: the momentum that was sent last; e: what was not sent of it
//             s' = scale(u) sign(u), e' = u - s'   s' travels
//   update    W = (1 - decay) W - rate / (1 - b1^t) s' / (sqrt(v / (1 - b2^warmup)) + epsilon)
// The device needs b1 s + e alone, which takes the storage of m: at first it is b1 m, and then
//   u = kept + (1 - b1) g, kept' = u - (1 - b1) s'
// (without error feedback, e' = 0: kept' = b1 s')
// so that kept + (1 - b1) (sum of what was sent) is (1 - b1) (sum of the gradients) from then on.
//
// A number whose v is 0 had no gradient in all of the warm-up, and is not updated: one bit cannot say zero. (DeepSpeed
// has a mask for such parameters, which its user fills in.) The paper's second compression, of the mean over workers,
// is exact for one worker, whose momentum it is: the CPU sends parameters back.
#pragma once

#include <memory>

#include "core/formats/layout.hpp"
#include "core/graph/graph.hpp"

namespace tandem {

inline constexpr std::int64_t kSignsPerWord = 32;
inline constexpr std::int64_t kSignBlock = 1024;  // numbers that share a scale, unless a scenario says otherwise

constexpr std::int64_t rounded_up_quotient(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// A warm-up of 15% of the steps is that of the BERT runs in DeepSpeed's announcement (2020). The paper's rule, that v
// has stopped changing, would need the data: what a step sends is known before it runs.
constexpr std::int64_t default_warmup_steps(std::int64_t steps) {
  const std::int64_t share = rounded_up_quotient(15 * steps, 100);
  return share < 1 ? 1 : share;
}

// Of 4 bytes. A block is its fp32 scale and its numbers' signs, 32 a word, the first in the lowest bit, set where a
// number is not negative. The last block may be short.
constexpr std::int64_t sign_words(std::int64_t elements, std::int64_t block) {
  return rounded_up_quotient(elements, block) + rounded_up_quotient(elements, kSignsPerWord);
}

// A bucket's signs, as a bucket of words: a block has numbers of one field.
inline std::shared_ptr<const Layout> sign_layout(const Layout& layout, std::int64_t block) {
  LayoutBuilder builder;
  for (const Field& field : layout.fields) builder.add(field.name, {sign_words(field.elements(), block)});
  return builder.build();
}

}  // namespace tandem
