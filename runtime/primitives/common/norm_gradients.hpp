// What backward passes of norms do with what LibTorch made of them.
#pragma once

#include <array>

#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {

// Which of input, weight and bias have gradients that are wanted.
inline std::array<bool, 3> wanted_of_norm(const Arguments& a) {
  const bool weights = a.wanted.weights != 0;
  return {a.input_gradients[0].wanted(), weights, weights};
}

inline void take_norm_gradients(const Arguments& a, const at::Tensor& input, const at::Tensor& weight,
                                const at::Tensor& bias) {
  if (a.wanted.weights != 0) {
    a.weight_gradients[0].take(weight);
    a.weight_gradients[1].take(bias);
  }
  if (a.input_gradients[0].wanted()) a.input_gradients[0].take(input);
}

}  // namespace tandem
