#include <ATen/ops/amin.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/topk.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "runtime/primitives/common/random_factors.hpp"

namespace tandem {
namespace {

using at::Tensor;

// Of each row, what its greatest number is drawn by.
Tensor drawn_scores(const Call& call, const Tensor& in, const RandomKey& random) {
  const Tensor logits = in.narrow(1, 0, in.size(1) - call.how.integer("padding", 0));
  Tensor scores = logits.to(at::kFloat, /*non_blocking=*/false, /*copy=*/true).contiguous();
  if (const std::int64_t count = call.how.integer("top_k", 0); count > 0 && count < scores.size(1)) {
    const Tensor least =
        at::amin(std::get<0>(at::topk(scores, count, 1, /*largest=*/true, /*sorted=*/false)), {1}, true);
    scores.masked_fill_(scores.lt(least), -std::numeric_limits<double>::infinity());
  }
  Tensor drawn = at::empty_like(scores);
  fill_uniform(drawn, stream_key(random, 0));
  drawn.log_().neg_().log_().neg_();
  return scores.div_(call.how.number("temperature")).add_(drawn);
}

void forward(Arguments& a) { at::argmax_out(a.out[0], drawn_scores(a.call, a.in[0], a.random), 1); }

std::vector<Tensor> reference(const ReferenceCall& c) {
  return {at::argmax(drawn_scores(c.call, c.in[0], c.random), 1)};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(drawn_token, forward, nullptr, reference)
