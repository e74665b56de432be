#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/stack.h>

#include "runtime/primitives/common/own_places.hpp"
#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {
namespace {

using at::Tensor;

struct Sizes {
  explicit Sizes(const Call& call)
      : heads(call.how.integer("heads")),
        sequence(call.how.integer("sequence")),
        own(call),
        size(call.shapes.in[0].columns() / heads),
        dims(call.how.integer("dims", size)),
        theta(call.how.number("theta")),
        interleaved(call.how.integer("interleaved", 0) != 0) {}
  std::int64_t heads, sequence;
  OwnPlaces own;
  std::int64_t size, dims;
  double theta;
  bool interleaved;
};

// [sequence, 1, dims / 2], in the precision of what they multiply: made in fp32, as Llama's and GPT-J's are.
struct Tables {
  Tensor cosine, sine;
};

Tables tables(const Sizes& s, const Tensor& like) {
  const auto integers = like.options().dtype(at::kLong);
  const Tensor exponents = at::arange(0, s.dims, 2, integers).to(at::kFloat).div_(s.dims);
  const Tensor frequencies = at::pow(s.theta, exponents).reciprocal_();
  const Tensor positions = at::arange(s.own.first, s.own.end(), s.own.step, integers).to(at::kFloat);
  const Tensor angles = at::mul(positions.unsqueeze(1), frequencies).unsqueeze(1);
  return {angles.cos().to(like.scalar_type()), angles.sin().to(like.scalar_type())};
}

// Both of all pairs, as views of [batch, sequence, heads, dims / 2].
struct Pairs {
  Pairs(const Tensor& rows, const Sizes& s) : all(rows.view({-1, s.sequence, s.heads, s.size})) {
    const std::int64_t half = s.dims / 2;
    first = s.interleaved ? all.slice(3, 0, s.dims, 2) : all.slice(3, 0, half);
    second = s.interleaved ? all.slice(3, 1, s.dims, 2) : all.slice(3, half, s.dims);
  }
  Tensor all, first, second;
};

// By the angle, or back.
void turn(const Tensor& out, const Tensor& x, const Arguments& a, bool back) {
  const Sizes s(a.call);
  const Tables table = tables(s, x);
  const Pairs from(x, s);
  Pairs to(out, s);
  at::mul_out(to.first, from.first, table.cosine);
  at::mul_out(to.second, from.second, table.cosine);
  const double sign = back ? -1 : 1;
  to.first.sub_(at::mul(from.second, table.sine), sign);
  to.second.add_(at::mul(from.first, table.sine), sign);
  if (s.dims < s.size) to.all.slice(3, s.dims).copy_(from.all.slice(3, s.dims));
}

void forward(Arguments& a) { turn(a.out[0], a.in[0], a, /*back=*/false); }

void backward(Arguments& a) {
  a.input_gradients[0].make([&](const Tensor& out) { turn(out, a.output_gradient, a, /*back=*/true); });
}

std::vector<Tensor> reference(const ReferenceCall& c) {
  const Tensor& x = c.in[0];
  const Sizes s(c.call);
  const Tables t = tables(s, x);
  const Pairs p(x, s);
  const Tensor first = p.first * t.cosine - p.second * t.sine, second = p.second * t.cosine + p.first * t.sine;
  const Tensor turned = s.interleaved ? at::stack({first, second}, -1).flatten(-2) : at::cat({first, second}, -1);
  return {at::cat({turned, p.all.slice(3, s.dims)}, -1).view(x.sizes())};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(rotary, forward, backward, reference)
