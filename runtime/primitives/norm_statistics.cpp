#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros_like.h>

#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

using at::Tensor;

bool is_centred(const Call& call) { return call.how.integer("centred", 0) != 0; }
std::int64_t part_of(const Call& call) { return call.how.integer("part", 0); }

void forward(Arguments& a) {
  const Tensor x = a.in[0].to(at::kFloat);
  if (!is_centred(a.call)) {
    Tensor sum = a.out[0].select(0, 0);
    at::sum_out(sum, at::mul(x, x), {1});
    return;
  }
  a.out[0].zero_();
  Tensor mean = a.out[0].select(0, 2 * part_of(a.call)), squares = a.out[0].select(0, 2 * part_of(a.call) + 1);
  at::mean_out(mean, x, {1});
  Tensor apart = at::sub(x, mean.unsqueeze(1));
  apart.mul_(apart);
  at::sum_out(squares, apart, {1});
}

std::vector<Tensor> reference(const ReferenceCall& c) {
  const Tensor x = c.in[0].to(at::kFloat);
  if (!is_centred(c.call)) return {x.pow(2).sum(1).unsqueeze(0)};
  const Tensor mean = x.mean(1), own = at::stack({mean, (x - mean.unsqueeze(1)).pow(2).sum(1)});
  std::vector<Tensor> all(static_cast<std::size_t>(c.call.how.integer("ranks", 1)), at::zeros_like(own));
  all[static_cast<std::size_t>(part_of(c.call))] = own;
  return {at::cat(all)};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(norm_statistics, forward, nullptr, reference)
