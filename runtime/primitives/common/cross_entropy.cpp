#include "runtime/primitives/common/cross_entropy.hpp"

#include <ATen/core/Reduction.h>
#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/_log_softmax_backward_data.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/nll_loss_backward.h>
#include <ATen/ops/nll_loss_forward.h>

namespace tandem {

at::Tensor counting_logits(const at::Tensor& logits, std::int64_t columns) {
  return logits.narrow(1, 0, columns).to(at::kFloat).contiguous();
}

at::Tensor cross_entropy(at::Tensor log_probabilities, at::Tensor target_count, const at::Tensor& logits,
                         const at::Tensor& targets) {
  at::Tensor loss = at::empty({}, log_probabilities.options());
  at::_log_softmax_out(log_probabilities, counting_logits(logits, log_probabilities.size(1)), 1,
                       /*half_to_float=*/false);
  at::nll_loss_forward_out(loss, target_count, log_probabilities, targets, {}, at::Reduction::Mean, kIgnoredTarget);
  return loss;
}

void cross_entropy_backward(at::Tensor logits_gradient, const at::Tensor& log_probabilities, const at::Tensor& targets,
                            const at::Tensor& target_count, std::int64_t micro_batches, const at::Tensor& loss_scale) {
  at::Tensor one = at::full({}, 1.0f / static_cast<float>(micro_batches), log_probabilities.options());
  if (loss_scale.defined()) one.mul_(loss_scale);
  at::Tensor picked = at::empty_like(log_probabilities);
  at::nll_loss_backward_out(picked, one, log_probabilities, targets, {}, at::Reduction::Mean, kIgnoredTarget,
                            target_count);
  const std::int64_t counting = log_probabilities.size(1), padding = logits_gradient.size(1) - counting;
  if (padding == 0 && logits_gradient.scalar_type() == at::kFloat) {
    at::_log_softmax_backward_data_out(logits_gradient, picked, log_probabilities, 1, at::kFloat);
    return;
  }
  at::_log_softmax_backward_data_out(picked, picked, log_probabilities, 1, at::kFloat);
  logits_gradient.narrow(1, 0, counting).copy_(picked);
  if (padding > 0) logits_gradient.narrow(1, counting, padding).zero_();
}

}  // namespace tandem
