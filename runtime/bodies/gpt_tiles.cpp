// Bodies of a gpt's block in tiles (core/workloads/common/gpt_tiles.hpp). Work::sizes as TileCall reads them; operands
// in the order of core/workloads/common/plan.hpp.
#include <ATen/ops/add.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>

#include "runtime/bodies/common/networks.hpp"

namespace tandem {
namespace {

using at::Tensor;

constexpr const char* kGelu = "tanh";  // GPT-2's approximation

// Names of a half's fields.
struct Half {
  bool attends;
  const char *norm, *first, *second;
};
constexpr Half kAttention{true, "ln1", "qkv", "projection"};
constexpr Half kFeedForward{false, "ln2", "up", "down"};

struct TileCall : TransformerCall {
  TileCall(const Operands& o, const Half& h)
      : TransformerCall(o), half(h), first(o.size(11) != 0), last(o.size(12) != 0), own(*this) {
    own.heads /= o.size(10);
    own.hidden /= o.size(10);
  }
  Half half;
  bool first, last;
  TransformerCall own;  // as if there were no other tiles

  std::int64_t made() const { return half.attends ? 3 * own.hidden : own.width(); }
  std::string second_weight() const { return std::string(half.second) + ".weight"; }
  std::string second_bias() const { return std::string(half.second) + ".bias"; }
  AttentionShape shape() const { return own.attention(/*causal=*/true); }
};

struct Saved {
  NormResult ln;  // of the first tile, without its output
  Tensor made;
  AttentionResult inner;  // of the feed-forward: the gelu alone
};

// `next` gives the tensor of a shape: the next operand to read, or to write.
template <typename Next>
Saved saved_by(const TileCall& t, const Next& next) {
  Saved saved;
  if (t.first) saved.ln.mean = next({t.tokens()}, at::kFloat), saved.ln.rstd = next({t.tokens()}, at::kFloat);
  saved.made = next({t.tokens(), t.made()});
  if (t.half.attends) {
    saved.inner = saved_attention(t.own, next);
  } else {
    saved.inner.out = next({t.tokens(), t.own.width()});
  }
  return saved;
}
Saved saved_writes(const TileCall& t, Operands& o) {
  return saved_by(t, [&](at::IntArrayRef shape, auto... type) { return o.write(shape, type...); });
}

// What a half's first tile reads, or its last one writes; between them, the norm's output and the sum.
Tensor read_rows(const TileCall& t, Operands& o, bool one) {
  return one ? o.read({t.tokens(), t.hidden}) : o.read({2, t.tokens(), t.hidden});
}
Tensor write_rows(const TileCall& t, Operands& o, bool one) {
  return one ? o.write({t.tokens(), t.hidden}) : o.write({2, t.tokens(), t.hidden});
}

void make_inner(const TileCall& t, const Tensor& normed, const Bucket& p, Saved& saved) {
  linear_out(saved.made, normed, p, t.half.first);
  if (t.half.attends) {
    attention_out(saved.inner, saved.made, t.shape());
  } else {
    at::gelu_out(saved.inner.out, saved.made, kGelu);
  }
}

Tensor light_inner(const TileCall& t, const Tensor& normed, const Bucket& p) {
  Tensor made = at::empty({t.tokens(), t.made()}, normed.options());
  linear_out(made, normed, p, t.half.first);
  if (t.half.attends) return attention(made, t.shape()).out;
  return at::gelu_out(made, made, kGelu);
}

// The sum with what the tile makes of its inner columns; `so_far`: of the first tile, the half's input.
void add_up(const TileCall& t, Tensor sum, const Tensor& so_far, const Tensor& inner, const Bucket& p) {
  if (t.first) {
    linear_out(sum, inner, p, t.half.second);
    sum.add_(so_far);
  } else {
    at::addmm_out(sum, so_far, inner, p[t.second_weight()].t());
  }
}

template <const Half& kHalf, bool kSaves>
std::int64_t forward(BodyCall& call) {
  Operands o(call);
  const TileCall t(o, kHalf);
  const Bucket p = o.read_bucket();
  const Tensor x = read_rows(t, o, t.first), out = write_rows(t, o, t.last);
  Saved saved;
  if (kSaves) saved = saved_writes(t, o);
  const Tensor normed = t.first ? out[0] : x[0];
  if (t.first) {
    const NormResult result = norm(x, p, kHalf.norm, kGptNormEpsilon);
    normed.copy_(result.out);
    if (kSaves) keep_statistics(saved.ln, result);
  } else if (!t.last) {
    out[0].copy_(normed);
  }
  if (kSaves) make_inner(t, normed, p, saved);
  add_up(t, t.last ? out : out[1], t.first ? x : x[1], kSaves ? saved.inner.out : light_inner(t, normed, p), p);
  return 0;
}

template <const Half& kHalf>
std::int64_t recompute(BodyCall& call) {
  Operands o(call);
  const TileCall t(o, kHalf);
  const Bucket p = o.read_bucket();
  const Tensor x = read_rows(t, o, t.first);
  Saved saved = saved_writes(t, o);
  if (!t.first) {
    make_inner(t, x[0], p, saved);
    return 0;
  }
  const NormResult result = norm(x, p, kHalf.norm, kGptNormEpsilon);
  keep_statistics(saved.ln, result);
  make_inner(t, result.out, p, saved);
  return 0;
}

// From the gradient of the sum to that of what the first linear map makes.
Tensor made_gradient(const TileCall& t, const Tensor& grad_sum, const Bucket& p, const Saved& saved,
                     const Gradients& gradients) {
  Tensor grad_made = at::empty({t.tokens(), t.made()}, grad_sum.options());
  const Tensor grad_inner = t.half.attends ? at::empty({t.tokens(), t.own.hidden}, grad_sum.options()) : grad_made;
  linear_input_gradient(grad_inner, grad_sum, p[t.second_weight()]);
  gradients.weight(t.second_weight().c_str(), grad_sum, saved.inner.out);
  if (t.first) gradients.row_sum(t.second_bias().c_str(), grad_sum);
  if (t.half.attends) {
    attention_backward(grad_made, grad_inner, saved.made, saved.inner, t.shape());
  } else {
    at::gelu_backward_out(grad_made, grad_made, saved.made, kGelu);
  }
  return grad_made;
}

// The gradient of the norm's output: what later tiles gave, and this one's share.
void norm_gradient(const TileCall& t, Tensor out, const Tensor& grad, const Tensor& grad_made, const Bucket& p) {
  const Tensor weight = p[std::string(t.half.first) + ".weight"];
  if (t.last) {
    linear_input_gradient(out, grad_made, weight);
  } else {
    at::addmm_out(out, grad[0], grad_made, weight);
  }
}

template <const Half& kHalf>
std::int64_t backward(BodyCall& call) {
  Operands o(call);
  const TileCall t(o, kHalf);
  const Tensor grad = read_rows(t, o, t.last);
  const Bucket p = o.read_bucket();
  const Tensor x = read_rows(t, o, t.first);
  const Tensor normed = t.first ? o.read({2, t.tokens(), t.hidden})[0] : x[0];
  const Saved saved = saved_by(t, [&](at::IntArrayRef shape, auto... type) { return o.read(shape, type...); });
  const Gradients gradients(o.write_bucket(), t.accumulates);
  Tensor grad_x = write_rows(t, o, t.first);
  const Tensor grad_sum = t.last ? grad : grad[1];
  Tensor grad_made = made_gradient(t, grad_sum, p, saved, gradients);
  gradients.linear(kHalf.first, grad_made, normed);
  if (!t.first) {
    norm_gradient(t, grad_x[0], grad, grad_made, p);
    grad_x[1].copy_(grad_sum);
    return 0;
  }
  const Tensor grad_normed = at::empty(x.sizes(), x.options());
  norm_gradient(t, grad_normed, grad, grad_made, p);
  grad_made = Tensor();
  at::add_out(grad_x, grad_sum, gradients.norm(kHalf.norm, grad_normed, x, saved.ln.mean, saved.ln.rstd, p));
  return 0;
}

constexpr BodyEntry kBodies[] = {
    {"gpt.attention_tile.forward", forward<kAttention, true>},
    {"gpt.attention_tile.forward_light", forward<kAttention, false>},
    {"gpt.attention_tile.recompute", recompute<kAttention>},
    {"gpt.attention_tile.backward", backward<kAttention>},
    {"gpt.feed_forward_tile.forward", forward<kFeedForward, true>},
    {"gpt.feed_forward_tile.forward_light", forward<kFeedForward, false>},
    {"gpt.feed_forward_tile.recompute", recompute<kFeedForward>},
    {"gpt.feed_forward_tile.backward", backward<kFeedForward>},
};

}  // namespace

std::span<const BodyEntry> gpt_tiles_bodies() { return kBodies; }

}  // namespace tandem
