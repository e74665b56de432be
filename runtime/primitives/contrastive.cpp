#include <ATen/TensorOperators.h>
#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/_log_softmax_backward_data.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/nll_loss_backward.h>
#include <ATen/ops/nll_loss_forward.h>

#include <tuple>

#include "runtime/primitives/common/losses.hpp"
#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kNone = -100;  // no image is without a text

at::Tensor own(const at::Tensor& square) { return at::arange(square.size(0), square.options().dtype(at::kLong)); }

// Of each row its own column.
at::Tensor loss_of(at::Tensor log_probabilities, const at::Tensor& logits) {
  at::_log_softmax_out(log_probabilities, logits, 1, /*half_to_float=*/false);
  return std::get<0>(at::nll_loss_forward(log_probabilities, own(logits), {}, at::Reduction::Mean, kNone));
}

at::Tensor logits_gradient(const at::Tensor& log_probabilities, const at::Tensor& grad) {
  const at::Tensor count = at::full({}, log_probabilities.size(0), grad.options());
  const at::Tensor picked =
      at::nll_loss_backward(grad, log_probabilities, own(log_probabilities), {}, at::Reduction::Mean, kNone, count);
  return at::_log_softmax_backward_data(picked, log_probabilities, 1, at::kFloat);
}

void forward(Arguments& a) {
  at::Tensor products = saved_or_apart(a, 0);
  at::mm_out(products, a.in[0].to(at::kFloat), a.in[1].to(at::kFloat).t());
  const at::Tensor logits = at::mul(products, a.weights[0].to(at::kFloat).exp());
  const at::Tensor images = loss_of(saved_or_apart(a, 1), logits), texts = loss_of(saved_or_apart(a, 2), logits.t());
  a.out[0] = images.add(texts).div_(2);
}

void backward(Arguments& a) {
  const at::Tensor scale = a.weights[0].to(at::kFloat).exp(), half = loss_gradient(a).div_(2);
  at::Tensor grad = logits_gradient(a.saved[2], half).t();
  grad.add_(logits_gradient(a.saved[1], half));
  // A sum goes by how its values lie: as the products do.
  if (a.wanted.weights != 0)
    a.weight_gradients[0].take(at::mul(a.saved[0], grad).sum().mul_(scale).to(a.weights[0].scalar_type()));
  grad.mul_(scale);
  const auto give = [&](std::size_t i, const at::Tensor& square) {
    if (!a.input_gradients[i].wanted()) return;
    a.input_gradients[i].make([&](at::Tensor out) {
      const at::Tensor other = a.in[1 - i].to(at::kFloat);
      if (out.scalar_type() == at::kFloat)
        at::mm_out(out, square, other);
      else
        out.copy_(at::mm(square, other));
    });
  };
  give(0, grad);
  give(1, grad.t());
}

std::vector<at::Tensor> reference(const ReferenceCall& c) {
  const at::Tensor products = at::mm(c.in[0].to(at::kFloat), c.in[1].to(at::kFloat).t());
  const at::Tensor logits = products * c.weights[0].to(at::kFloat).exp(), targets = own(logits);
  return {(at::cross_entropy_loss(logits, targets) + at::cross_entropy_loss(logits.t(), targets)) / 2};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(contrastive, forward, backward, reference)
