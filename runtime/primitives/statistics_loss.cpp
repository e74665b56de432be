#include <ATen/TensorOperators.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/full.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>

#include "runtime/primitives/common/cross_entropy.hpp"
#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

using at::Tensor;

// Of all ranks, [ranks, rows]: each row's log-sum-exp, or its target's logit.
Tensor of_ranks(const Tensor& statistics, std::int64_t which) {
  return statistics.view({statistics.size(0) / 2, 2, statistics.size(1)}).select(1, which);
}

void forward(Arguments& a) {
  Tensor shares = a.saved[0], count = a.saved[1];
  const Tensor greatest = at::amax(of_ranks(a.in[0], 0), {0}, /*keepdim=*/true);
  at::sub_out(shares, of_ranks(a.in[0], 0), greatest);
  shares.exp_();
  Tensor sum = at::sum(shares, {0}, /*keepdim=*/true);
  shares.div_(sum);
  sum.log_().add_(greatest);  // of all columns
  Tensor losses = sum.squeeze(0);
  losses.sub_(at::sum(of_ranks(a.in[0], 1), {0}));
  const Tensor ignored = a.in[1].flatten().eq(kIgnoredTarget);
  losses.masked_fill_(ignored, 0);
  at::sum_out(count, ignored.logical_not(), {0}, /*keepdim=*/false, at::kFloat);
  a.out[0] = at::sum(losses).div_(count);
}

void backward(Arguments& a) {
  Tensor one = at::full({}, 1.0f / static_cast<float>(a.micro_batches), a.saved[0].options());
  if (a.loss_scale.defined()) one.mul_(a.loss_scale);
  one.div_(a.saved[1]);
  const Tensor ignored = a.in[1].flatten().eq(kIgnoredTarget);
  a.input_gradients[0].make([&](const Tensor& out) {
    Tensor of_sums = of_ranks(out, 0), of_targets = of_ranks(out, 1);
    at::mul_out(of_sums, a.saved[0], one);
    of_targets.copy_(one.neg());
    of_sums.masked_fill_(ignored, 0);
    of_targets.masked_fill_(ignored, 0);
  });
}

std::vector<Tensor> reference(const ReferenceCall& c) {
  const Tensor counts = c.in[1].flatten().ne(kIgnoredTarget).to(at::kFloat);
  const Tensor losses = at::logsumexp(of_ranks(c.in[0], 0), {0}) - at::sum(of_ranks(c.in[0], 1), {0});
  return {at::sum(losses * counts) / at::sum(counts)};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(statistics_loss, forward, backward, reference)
