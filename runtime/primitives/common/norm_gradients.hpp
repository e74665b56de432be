// What backward passes of norms do with what LibTorch made of them.
#pragma once

#include <array>

#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {

// Which of input, weight and bias have gradients that are wanted.
inline std::array<bool, 3> wanted_of_norm(const Arguments& a) {
  return {a.input_gradients[0].wanted(), (a.wanted.weights & bit(0)) != 0, (a.wanted.weights & bit(1)) != 0};
}

inline void take_norm_gradients(const Arguments& a, const at::Tensor& input, const at::Tensor& weight,
                                const at::Tensor& bias) {
  if (a.wanted.weights & bit(0)) a.weight_gradients[0].take(weight);
  if (a.wanted.weights & bit(1)) a.weight_gradients[1].take(bias);
  if (a.input_gradients[0].wanted()) a.input_gradients[0].take(input);
}

}  // namespace tandem
