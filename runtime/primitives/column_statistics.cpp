#include <ATen/core/Reduction.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/log.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/nll_loss_backward.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>

#include "runtime/primitives/common/cross_entropy.hpp"
#include "runtime/primitives/common/own_rows.hpp"
#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

using at::Tensor;

std::int64_t part_of(const Call& call) { return call.how.integer("part", 0); }

// The rank's columns that are somebody's.
std::int64_t counting(const Call& call, std::int64_t columns) {
  const std::int64_t all = columns * call.how.integer("ranks", 1) - call.how.integer("padding", 0);
  return std::clamp<std::int64_t>(all - part_of(call) * columns, 0, columns);
}

void forward(Arguments& a) {
  const std::int64_t columns = a.in[0].size(1), own = counting(a.call, columns);
  a.out[0].zero_();
  Tensor sums = a.out[0].select(0, 2 * part_of(a.call)), targets = a.out[0].select(0, 2 * part_of(a.call) + 1);
  if (own < columns) a.saved[0].narrow(1, own, columns - own).zero_();
  if (own == 0) return void(sums.fill_(std::numeric_limits<float>::lowest()));
  const Tensor logits = counting_logits(a.in[0], own);
  Tensor shares = a.saved[0].narrow(1, 0, own);
  {
    const Tensor greatest = at::amax(logits, {1}, /*keepdim=*/true);
    at::sub_out(shares, logits, greatest);
    shares.exp_();
    const Tensor sum = at::sum(shares, {1}, /*keepdim=*/true);
    shares.div_(sum);
    Tensor log = sums.unsqueeze(1);
    at::log_out(log, sum).add_(greatest);
  }
  const OwnRows rows(a.call, a.in[1], columns);
  Tensor of_targets = targets.unsqueeze(1);
  const Tensor places = rows.places.unsqueeze(1);
  at::gather_out(of_targets, logits, 1, places);
  targets.masked_fill_(rows.elsewhere, 0);
}

void backward(Arguments& a) {
  const Tensor of_sum = a.output_gradient.select(0, 2 * part_of(a.call));
  const Tensor of_target = a.output_gradient.select(0, 2 * part_of(a.call) + 1);
  const OwnRows rows(a.call, a.in[1], a.saved[0].size(1));
  // To scatter is deterministic on a GPU by way of a sort, which this is not.
  const Tensor here = of_target.masked_fill(rows.elsewhere, 0).neg_(), count = at::empty({}, here.options());
  a.input_gradients[0].make([&](Tensor out) {
    const bool apart = out.scalar_type() != at::kFloat;
    Tensor gradient = apart ? at::empty_like(a.saved[0]) : out;
    at::nll_loss_backward_out(gradient, here, a.saved[0], rows.places, {}, at::Reduction::None, kIgnoredTarget, count);
    gradient.addcmul_(a.saved[0], of_sum.unsqueeze(1));
    if (apart) out.copy_(gradient);
  });
}

std::vector<Tensor> reference(const ReferenceCall& c) {
  const std::int64_t columns = c.in[0].size(1), ranks = c.call.how.integer("ranks", 1);
  const Tensor logits = counting_logits(c.in[0], counting(c.call, columns));
  const OwnRows rows(c.call, c.in[1], columns);
  const Tensor nobodys = at::zeros({2, logits.size(0)}, logits.options());
  const Tensor own =
      at::stack({at::logsumexp(logits, {1}),
                 at::gather(logits, 1, rows.places.unsqueeze(1)).squeeze(1).masked_fill(rows.elsewhere, 0)});
  std::vector<Tensor> all(static_cast<std::size_t>(ranks), nobodys);
  all[static_cast<std::size_t>(part_of(c.call))] = own;
  return {at::cat(all)};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(column_statistics, forward, backward, reference)
