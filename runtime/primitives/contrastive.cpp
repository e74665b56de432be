#include <ATen/TensorOperators.h>
#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/_log_softmax_backward_data.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/full.h>
#include <ATen/ops/logical_or.h>
#include <ATen/ops/masked_fill.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/nll_loss_backward.h>
#include <ATen/ops/nll_loss_forward.h>

#include <tuple>

#include "runtime/primitives/common/losses.hpp"
#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kNone = -100;  // the target of a row that is none
// A logit of what is none. Its probability is zero, and unlike infinity it leaves numbers where all are none.
constexpr double kHidden = -1e9;

bool is_counted(const Call& call) { return call.how.integer("counted", 0) != 0; }
std::size_t stride(const Call& call) { return is_counted(call) ? 3 : 2; }

// Of one kind of pairs: of each row its own column, and what there is of them.
struct Pairs {
  Pairs(std::int64_t rows, const at::Tensor& count, const at::TensorOptions& options)
      : targets(at::arange(rows, options.dtype(at::kLong))) {
    if (!count.defined()) return;
    const at::Tensor none = targets.ge(count);
    hidden = at::logical_or(none.unsqueeze(0), none.unsqueeze(1));
    targets.masked_fill_(none, kNone);
    divisor = at::clamp_min(count, 1).to(at::kFloat).mul_(2).squeeze(0);
  }
  at::Tensor targets, hidden, divisor;  // the last two undefined: all rows are pairs
  std::int64_t reduction() const { return hidden.defined() ? at::Reduction::Sum : at::Reduction::Mean; }
  // The mean of both directions.
  at::Tensor mean(const at::Tensor& both) const { return divisor.defined() ? both.div(divisor) : both.div(2); }
};

Pairs pairs_of(const Call& call, const std::vector<at::Tensor>& in, std::size_t first) {
  return {in[first].size(0), is_counted(call) ? in[first + 2] : at::Tensor(), in[first].options()};
}

at::Tensor loss_of(at::Tensor log_probabilities, const at::Tensor& logits, const Pairs& pairs) {
  at::_log_softmax_out(log_probabilities, logits, 1, /*half_to_float=*/false);
  return std::get<0>(at::nll_loss_forward(log_probabilities, pairs.targets, {}, pairs.reduction(), kNone));
}

at::Tensor logits_gradient(const at::Tensor& log_probabilities, const at::Tensor& grad, const Pairs& pairs) {
  const at::Tensor count = at::full({}, log_probabilities.size(0), grad.options());
  const at::Tensor picked =
      at::nll_loss_backward(grad, log_probabilities, pairs.targets, {}, pairs.reduction(), kNone, count);
  return at::_log_softmax_backward_data(picked, log_probabilities, 1, at::kFloat);
}

at::Tensor forward_of(Arguments& a, std::size_t kind) {
  const std::size_t first = kind * stride(a.call);
  const Pairs pairs = pairs_of(a.call, a.in, first);
  at::Tensor products = saved_or_apart(a, 3 * kind);
  at::mm_out(products, a.in[first].to(at::kFloat), a.in[first + 1].to(at::kFloat).t());
  const at::Tensor logits = at::mul(products, a.weights[kind].to(at::kFloat).exp());
  if (pairs.hidden.defined()) logits.masked_fill_(pairs.hidden, kHidden);
  const at::Tensor images = loss_of(saved_or_apart(a, 3 * kind + 1), logits, pairs);
  return pairs.mean(images.add(loss_of(saved_or_apart(a, 3 * kind + 2), logits.t(), pairs)));
}

void forward(Arguments& a) {
  at::Tensor sum = forward_of(a, 0);
  for (std::size_t kind = 1; kind < a.weights.size(); ++kind) sum.add_(forward_of(a, kind));
  a.out[0] = sum.div_(static_cast<double>(a.weights.size()));
}

void backward_of(Arguments& a, std::size_t kind, const at::Tensor& loss_grad) {
  const std::size_t first = kind * stride(a.call);
  const Pairs pairs = pairs_of(a.call, a.in, first);
  const at::Tensor scale = a.weights[kind].to(at::kFloat).exp(), half = pairs.mean(loss_grad);
  at::Tensor grad = logits_gradient(a.saved[3 * kind + 2], half, pairs).t();
  grad.add_(logits_gradient(a.saved[3 * kind + 1], half, pairs));
  if (pairs.hidden.defined()) grad.masked_fill_(pairs.hidden, 0);
  // A sum goes by how its values lie: as the products do.
  if ((a.wanted.weights & bit(kind)) != 0)
    a.weight_gradients[kind].take(at::mul(a.saved[3 * kind], grad).sum().mul_(scale).to(a.weights[kind].scalar_type()));
  grad.mul_(scale);
  const auto give = [&](std::size_t i, const at::Tensor& square) {
    if (!a.input_gradients[first + i].wanted()) return;
    a.input_gradients[first + i].make([&](at::Tensor out) {
      const at::Tensor other = a.in[first + 1 - i].to(at::kFloat);
      if (out.scalar_type() == at::kFloat)
        at::mm_out(out, square, other);
      else
        out.copy_(at::mm(square, other));
    });
  };
  give(0, grad);
  give(1, grad.t());
}

void backward(Arguments& a) {
  const at::Tensor grad = loss_gradient(a).div_(static_cast<double>(a.weights.size()));
  for (std::size_t kind = 0; kind < a.weights.size(); ++kind) backward_of(a, kind, grad);
}

at::Tensor reference_of(const ReferenceCall& c, std::size_t kind) {
  const std::size_t first = kind * stride(c.call);
  const Pairs pairs = pairs_of(c.call, c.in, first);
  const at::Tensor products = at::mm(c.in[first].to(at::kFloat), c.in[first + 1].to(at::kFloat).t());
  at::Tensor logits = products * c.weights[kind].to(at::kFloat).exp();
  if (pairs.hidden.defined()) logits = logits.masked_fill(pairs.hidden, kHidden);
  return pairs.mean(at::cross_entropy_loss(logits, pairs.targets, {}, pairs.reduction()) +
                    at::cross_entropy_loss(logits.t(), pairs.targets, {}, pairs.reduction()));
}

std::vector<at::Tensor> reference(const ReferenceCall& c) {
  at::Tensor sum = reference_of(c, 0);
  for (std::size_t kind = 1; kind < c.weights.size(); ++kind) sum = sum + reference_of(c, kind);
  return {sum / static_cast<double>(c.weights.size())};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(contrastive, forward, backward, reference)
