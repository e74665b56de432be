// Mean cross entropy by LibTorch's kernels, in fp32 in every precision.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace tandem {

inline constexpr std::int64_t kIgnoredTarget = -100;  // as torch's cross_entropy

// Over targets other than kIgnoredTarget. Returns the loss, a scalar. `log_probabilities` may have fewer columns than
// `logits`, of which the last are nobody's, then; their gradients are zero.
at::Tensor cross_entropy(at::Tensor log_probabilities, at::Tensor target_count, const at::Tensor& logits,
                         const at::Tensor& targets);
// Of a row those that count, in fp32 and without strides.
at::Tensor counting_logits(const at::Tensor& logits, std::int64_t columns);
// The gradient of loss / micro_batches with respect to the logits, times the loss scale if there is one (undefined:
// none).
void cross_entropy_backward(at::Tensor logits_gradient, const at::Tensor& log_probabilities, const at::Tensor& targets,
                            const at::Tensor& target_count, std::int64_t micro_batches, const at::Tensor& loss_scale);

}  // namespace tandem
