#include <ATen/ops/arange.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/embedding_dense_backward.h>
#include <ATen/ops/lt.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>

#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

using at::Tensor;

// Of the distance from each query to each key [queries, keys], as T5 numbers them, on the device of `beside`.
Tensor buckets_of(const Attributes& how, const Tensor& beside) {
  const auto integers = beside.options().dtype(at::kLong);
  const std::int64_t first_place = how.integer("first", 0);
  Tensor distance = at::sub(at::arange(how.integer("keys"), integers).unsqueeze(0),
                            at::arange(first_place, first_place + how.integer("queries"), integers).unsqueeze(1));
  std::int64_t buckets = how.integer("buckets");
  Tensor first;  // of the side
  if (how.integer("bidirectional") != 0) {
    buckets /= 2;
    first = distance.gt(0).to(at::kLong).mul_(buckets);
    distance.abs_();
  } else {
    distance.clamp_max_(0).neg_();
  }
  const std::int64_t exact = buckets / 2;
  const double most = std::log(static_cast<double>(how.integer("most")) / static_cast<double>(exact));
  Tensor far = distance.to(at::kFloat).div_(exact).log_().div_(most).mul_(buckets - exact).to(at::kLong);
  far.add_(exact).clamp_max_(buckets - 1);
  const Tensor near = distance.lt(exact);
  far.copy_(at::where(near, distance, far));
  return first.defined() ? far.add_(first) : far;
}

void forward(Arguments& a) {
  a.out[0].copy_(at::embedding(a.weights[0], buckets_of(a.call.how, a.weights[0])).permute({2, 0, 1}));
}

void backward(Arguments& a) {
  if (a.wanted.weights == 0) return;
  const Tensor& grad = a.output_gradient;
  a.weight_gradients[0].take(at::embedding_dense_backward(grad.permute({1, 2, 0}), buckets_of(a.call.how, grad),
                                                          a.call.how.integer("buckets"), /*padding_idx=*/-1,
                                                          /*scale_grad_by_freq=*/false));
}

std::vector<Tensor> reference(const ReferenceCall& c) {
  return {at::embedding(c.weights[0], buckets_of(c.call.how, c.weights[0])).permute({2, 0, 1})};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(relative_bias, forward, backward, reference)
