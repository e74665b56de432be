#include <ATen/TensorOperators.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>

#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

using at::Tensor;

bool is_centred(const Call& call) { return call.how.integer("centred", 0) != 0; }

// Of each row, of all ranks' columns: the mean, if it is taken, and one over the deviation.
struct Statistics {
  Statistics(const Call& call, const Tensor& told, std::int64_t columns) {
    const std::int64_t ranks = call.how.integer("ranks");
    const auto all = static_cast<double>(ranks * columns);
    if (is_centred(call)) {
      const Tensor means = told.view({ranks, 2, -1}).select(1, 0), squares = told.view({ranks, 2, -1}).select(1, 1);
      mean = means.mean(0);
      Tensor between = at::sub(means, mean);
      between.mul_(between);
      scale = between.sum(0);
      scale.mul_(columns).add_(squares.sum(0));
    } else {
      scale = told.select(0, 0).clone();
    }
    scale.div_(all).add_(call.how.number("epsilon")).rsqrt_();
  }
  Tensor mean, scale;  // [rows]
};

void forward(Arguments& a) {
  const Tensor& x = a.in[0];
  const Statistics of(a.call, a.in[1], x.size(1));
  const bool wide = x.scalar_type() == at::kFloat;
  const Tensor numbers = x.to(at::kFloat), scale = of.scale.unsqueeze(1);
  Tensor out = wide ? a.out[0] : at::empty(x.sizes(), numbers.options());
  if (of.mean.defined()) {
    at::sub_out(out, numbers, of.mean.unsqueeze(1));
    out.mul_(scale);
  } else {
    at::mul_out(out, numbers, scale);
  }
  Tensor factor = a.weights[0].to(at::kFloat);
  if (a.call.how.integer("offset", 0) != 0) factor = at::add(factor, 1);
  out.mul_(factor);
  if (of.mean.defined()) out.add_(a.weights[1].to(at::kFloat));
  if (!wide) a.out[0].copy_(out);
}

std::vector<Tensor> reference(const ReferenceCall& c) {
  const Tensor x = c.in[0].to(at::kFloat), told = c.in[1];
  const std::int64_t ranks = c.call.how.integer("ranks"), columns = x.size(1);
  const double epsilon = c.call.how.number("epsilon");
  Tensor factor = c.weights[0].to(at::kFloat);
  if (c.call.how.integer("offset", 0) != 0) factor = factor + 1;
  if (!is_centred(c.call)) {
    const Tensor square = told.sum(0).unsqueeze(1) / (ranks * columns);
    return {(x * (square + epsilon).rsqrt() * factor).to(c.in[0].scalar_type())};
  }
  const Tensor means = told.view({ranks, 2, -1}).select(1, 0), squares = told.view({ranks, 2, -1}).select(1, 1);
  const Tensor mean = means.mean(0);
  const Tensor variance = (squares.sum(0) + (means - mean).pow(2).sum(0) * columns) / (ranks * columns);
  const Tensor normed = (x - mean.unsqueeze(1)) * (variance + epsilon).rsqrt().unsqueeze(1);
  return {(normed * factor + c.weights[1].to(at::kFloat)).to(c.in[0].scalar_type())};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(divided_norm, forward, nullptr, reference)
