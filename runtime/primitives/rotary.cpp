#include <ATen/ops/arange.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/pow.h>

#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

using at::Tensor;

// [sequence, 1, dims / 2], in the precision of what they multiply: made in fp32, as Llama's and GPT-J's are.
struct Tables {
  Tensor cosine, sine;
};

Tables tables(std::int64_t sequence, std::int64_t dims, double theta, const Tensor& like) {
  const auto integers = like.options().dtype(at::kLong);
  const Tensor exponents = at::arange(0, dims, 2, integers).to(at::kFloat).div_(dims);
  const Tensor frequencies = at::pow(theta, exponents).reciprocal_();
  const Tensor positions = at::arange(sequence, integers).to(at::kFloat);
  const Tensor angles = at::mul(positions.unsqueeze(1), frequencies).unsqueeze(1);
  return {angles.cos().to(like.scalar_type()), angles.sin().to(like.scalar_type())};
}

// Both of all pairs, as views of [batch, sequence, heads, dims / 2].
struct Pairs {
  Pairs(const Tensor& rows, std::int64_t sequence, std::int64_t heads, std::int64_t dims, bool interleaved)
      : all(rows.view({-1, sequence, heads, rows.size(1) / heads})) {
    const std::int64_t half = dims / 2;
    first = interleaved ? all.slice(3, 0, dims, 2) : all.slice(3, 0, half);
    second = interleaved ? all.slice(3, 1, dims, 2) : all.slice(3, half, dims);
  }
  Tensor all, first, second;
};

// By the angle, or back.
void turn(const Tensor& out, const Tensor& x, const Arguments& a, bool back) {
  const Attributes& how = a.call.how;
  const std::int64_t heads = how.integer("heads"), sequence = how.integer("sequence"), size = x.size(1) / heads;
  const std::int64_t dims = how.integer("dims", size);
  const bool interleaved = how.integer("interleaved", 0) != 0;
  const Tables table = tables(sequence, dims, how.number("theta"), x);
  const Pairs from(x, sequence, heads, dims, interleaved);
  Pairs to(out, sequence, heads, dims, interleaved);
  at::mul_out(to.first, from.first, table.cosine);
  at::mul_out(to.second, from.second, table.cosine);
  const double sign = back ? -1 : 1;
  to.first.sub_(at::mul(from.second, table.sine), sign);
  to.second.add_(at::mul(from.first, table.sine), sign);
  if (dims < size) to.all.slice(3, dims).copy_(from.all.slice(3, dims));
}

void forward(Arguments& a) { turn(a.out[0], a.in[0], a, /*back=*/false); }

void backward(Arguments& a) {
  a.input_gradients[0].make([&](const Tensor& out) { turn(out, a.output_gradient, a, /*back=*/true); });
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(rotary, forward, backward)
