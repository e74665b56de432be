// Bodies of the bert family. Work::sizes as TransformerCall reads them; operands in the order of
// core/workloads/common/plan.hpp.
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/mm.h>

#include "runtime/bodies/common/embedding.hpp"
#include "runtime/bodies/common/load.hpp"
#include "runtime/bodies/common/networks.hpp"
#include "runtime/bodies/common/tiled_loss.hpp"

namespace tandem {
namespace {

using at::Tensor;
using Sizes = TransformerCall;

constexpr const char* kGelu = "none";  // by the error function, as BERT

struct BlockSaved {
  Tensor qkv;
  AttentionResult attention;
  Tensor sum1;
  NormResult ln1;
  Tensor up, gelu, sum2;
  NormResult ln2;  // out: the block's output
};

// `next` gives the tensor of a shape: the next operand to read, or to write.
template <typename Next>
BlockSaved block_saved(const Sizes& s, const Next& next) {
  const std::int64_t n = s.tokens(), c = s.hidden;
  BlockSaved b;
  b.qkv = next({n, 3 * c});
  b.attention = saved_attention(s, next);
  b.sum1 = next({n, c});
  b.ln1.mean = next({n}, at::kFloat), b.ln1.rstd = next({n}, at::kFloat), b.ln1.out = next({n, c});
  b.up = next({n, s.width()}), b.gelu = next({n, s.width()});
  b.sum2 = next({n, c});
  b.ln2.mean = next({n}, at::kFloat), b.ln2.rstd = next({n}, at::kFloat);
  return b;
}

std::int64_t embedding_forward(BodyCall& call) {
  Operands o(call);
  const Sizes s(o);
  const std::int64_t n = s.tokens(), c = s.hidden;
  const Bucket p = o.read_bucket();
  const Tensor tokens = o.read({n}, at::kLong);
  const Tensor out = o.write({n, c}), sum = o.write({s.batch, s.sequence, c});
  const Tensor mean = o.write({n}, at::kFloat), rstd = o.write({n}, at::kFloat);
  embed_out(sum, tokens, p);
  norm_out({out, mean, rstd}, sum.view({n, c}), p, "ln", kBertNormEpsilon);
  return 0;
}

std::int64_t embedding_backward(BodyCall& call) {
  Operands o(call);
  const Sizes s(o);
  const std::int64_t n = s.tokens(), c = s.hidden;
  const Tensor grad = o.read({n, c});
  const Bucket p = o.read_bucket();
  const Tensor sum = o.read({n, c}), mean = o.read({n}, at::kFloat), rstd = o.read({n}, at::kFloat);
  const Tensor tokens = o.read({s.batch, s.sequence}, at::kLong);
  const Tensor tied = s.tied ? o.read({s.vocabulary, c}) : Tensor();
  const Gradients gradients(o.write_bucket(), s.accumulates);
  const Tensor grad_sum = gradients.norm("ln", grad, sum, mean, rstd, p);
  embed_backward(gradients, grad_sum.view({s.batch, s.sequence, c}), tokens, s.vocabulary, tied);
  return 0;
}

// All but the last norm.
void block_forward_saved(const Sizes& s, const Tensor& x, const Bucket& p, const BlockSaved& b) {
  linear_out(b.qkv, x, p, "qkv");
  attention_out(b.attention, b.qkv, s.attention(/*causal=*/false));
  linear_out(b.sum1, b.attention.out, p, "projection");
  b.sum1.add_(x);
  norm_out(b.ln1, b.sum1, p, "ln1", kBertNormEpsilon);
  linear_out(b.up, b.ln1.out, p, "up");
  Tensor gelu = b.gelu;
  at::gelu_out(gelu, b.up, kGelu);
  linear_out(b.sum2, b.gelu, p, "down");
  b.sum2.add_(b.ln1.out);
}

std::int64_t block_forward(BodyCall& call) {
  Operands o(call);
  const Sizes s(o);
  const Bucket p = o.read_bucket();
  const Tensor x = o.read({s.tokens(), s.hidden});
  const Tensor out = o.write({s.tokens(), s.hidden});
  BlockSaved b = block_saved(s, [&](at::IntArrayRef shape, auto... type) { return o.write(shape, type...); });
  b.ln2.out = out;
  block_forward_saved(s, x, p, b);
  norm_out(b.ln2, b.sum2, p, "ln2", kBertNormEpsilon);
  return 0;
}

std::int64_t block_recompute(BodyCall& call) {
  Operands o(call);
  const Sizes s(o);
  const Bucket p = o.read_bucket();
  const Tensor x = o.read({s.tokens(), s.hidden});
  const BlockSaved b = block_saved(s, [&](at::IntArrayRef shape, auto... type) { return o.write(shape, type...); });
  block_forward_saved(s, x, p, b);
  const NormResult last = norm(b.sum2, p, "ln2", kBertNormEpsilon);
  b.ln2.mean.copy_(last.mean.view_as(b.ln2.mean));
  b.ln2.rstd.copy_(last.rstd.view_as(b.ln2.rstd));
  return 0;
}

// The first norm's output, keeping nothing.
NormResult attention_half_light(const Sizes& s, const Tensor& x, const Bucket& p) {
  const Tensor sum = at::empty_like(x);
  {
    const Tensor qkv = at::empty({s.tokens(), 3 * s.hidden}, x.options());
    linear_out(qkv, x, p, "qkv");
    linear_out(sum, attention(qkv, s.attention(/*causal=*/false)).out, p, "projection");
  }
  sum.add_(x);
  return norm(sum, p, "ln1", kBertNormEpsilon);
}

std::int64_t block_forward_light(BodyCall& call) {
  Operands o(call);
  const Sizes s(o);
  const Bucket p = o.read_bucket();
  const Tensor x = o.read({s.tokens(), s.hidden}), out = o.write({s.tokens(), s.hidden});
  const NormResult ln1 = attention_half_light(s, x, p);
  Tensor up = at::empty({s.tokens(), s.width()}, x.options());
  linear_out(up, ln1.out, p, "up");
  at::gelu_out(up, up, kGelu);
  const Tensor sum = at::empty_like(x);
  linear_out(sum, up, p, "down");
  up = Tensor();
  sum.add_(ln1.out);
  out.copy_(norm(sum, p, "ln2", kBertNormEpsilon).out);
  return 0;
}

// From the output's gradient to that of the first norm's input.
Tensor feed_forward_backward(const Sizes& s, const Tensor& grad, const Bucket& p, const BlockSaved& b,
                             const Gradients& gradients) {
  const Tensor grad_sum2 = gradients.norm("ln2", grad, b.sum2, b.ln2.mean, b.ln2.rstd, p);
  Tensor grad_ln1 = at::empty_like(grad);
  {
    Tensor grad_up = at::empty({s.tokens(), s.width()}, grad.options());
    linear_input_gradient(grad_up, grad_sum2, p["down.weight"]);
    gradients.linear("down", grad_sum2, b.gelu);
    at::gelu_backward_out(grad_up, grad_up, b.up, kGelu);
    linear_input_gradient(grad_ln1, grad_up, p["up.weight"]);
    gradients.linear("up", grad_up, b.ln1.out);
  }
  grad_ln1.add_(grad_sum2);
  return gradients.norm("ln1", grad_ln1, b.sum1, b.ln1.mean, b.ln1.rstd, p);
}

std::int64_t block_backward(BodyCall& call) {
  Operands o(call);
  const Sizes s(o);
  const Tensor grad = o.read({s.tokens(), s.hidden});
  const Bucket p = o.read_bucket();
  const Tensor x = o.read({s.tokens(), s.hidden});
  const BlockSaved b = block_saved(s, [&](at::IntArrayRef shape, auto... type) { return o.read(shape, type...); });
  const Gradients gradients(o.write_bucket(), s.accumulates);
  const Tensor grad_x = o.write({s.tokens(), s.hidden});
  const Tensor grad_sum1 = feed_forward_backward(s, grad, p, b, gradients);
  const Tensor grad_qkv =
      projected_attention_backward(grad_sum1, p, b.qkv, b.attention, x, s.attention(/*causal=*/false), gradients);
  linear_input_gradient(grad_x, grad_qkv, p["qkv.weight"]);
  grad_x.add_(grad_sum1);
  return 0;
}

struct HeadSaved {
  Tensor transform, gelu;
  NormResult ln;
  Tensor log_probabilities, target_count;
};

template <typename Next>
HeadSaved head_saved(const Sizes& s, const Next& next) {
  const std::int64_t n = s.tokens(), c = s.hidden;
  HeadSaved h;
  h.transform = next({n, c}), h.gelu = next({n, c});
  h.ln.mean = next({n}, at::kFloat), h.ln.rstd = next({n}, at::kFloat), h.ln.out = next({n, c});
  h.log_probabilities = next({n, s.vocabulary}, at::kFloat), h.target_count = next({}, at::kFloat);
  return h;
}

std::int64_t head_forward(BodyCall& call) {
  Operands o(call);
  const Sizes s(o);
  const Bucket p = o.read_bucket();
  const Tensor weight = s.tied ? o.read_bucket()["wte"] : p["output.weight"];
  const Tensor x = o.read({s.tokens(), s.hidden}), targets = o.read({s.tokens()}, at::kLong);
  const HeadSaved h = head_saved(s, [&](at::IntArrayRef shape, auto... type) { return o.write(shape, type...); });
  linear_out(h.transform, x, p, "transform");
  Tensor gelu = h.gelu;
  at::gelu_out(gelu, h.transform, kGelu);
  norm_out(h.ln, h.gelu, p, "ln", kBertNormEpsilon);
  const Tensor logits = at::addmm(p["output.bias"], h.ln.out, weight.t());
  return give_result(call, cross_entropy(h.log_probabilities, h.target_count, logits, targets));
}

// From the gradient of the norm's output to that of the head's input.
void transform_backward(const Tensor& grad_x, const Tensor& x, const HeadSaved& h, const Tensor& grad_ln,
                        const Bucket& p, const Gradients& gradients) {
  Tensor grad_gelu = gradients.norm("ln", grad_ln, h.gelu, h.ln.mean, h.ln.rstd, p);
  at::gelu_backward_out(grad_gelu, grad_gelu, h.transform, kGelu);
  gradients.linear("transform", grad_gelu, x);
  linear_input_gradient(grad_x, grad_gelu, p["transform.weight"]);
}

std::int64_t head_backward(BodyCall& call) {
  Operands o(call);
  const Sizes s(o);
  const Bucket p = o.read_bucket();
  const Tensor weight = s.tied ? o.read_bucket()["wte"] : p["output.weight"];
  const Tensor x = o.read({s.tokens(), s.hidden});
  const HeadSaved h = head_saved(s, [&](at::IntArrayRef shape, auto... type) { return o.read(shape, type...); });
  const Tensor targets = o.read({s.tokens()}, at::kLong);
  const Gradients gradients(o.write_bucket(), s.accumulates);
  const Tensor grad_x = o.write({s.tokens(), s.hidden});
  const Tensor grad_ln = at::empty_like(h.ln.out);
  {
    const Tensor grad_logits = at::empty(h.log_probabilities.sizes(), x.options());
    cross_entropy_backward(grad_logits, h.log_probabilities, targets, h.target_count, s.micro_batches, o.loss_scale());
    linear_input_gradient(grad_ln, grad_logits, weight);
    if (s.tied) {
      Tensor contribution = o.write({s.vocabulary, s.hidden});
      at::mm_out(contribution, grad_logits.t(), h.ln.out);
    } else {
      gradients.weight("output.weight", grad_logits, h.ln.out);
    }
    gradients.row_sum("output.bias", grad_logits);
  }
  transform_backward(grad_x, x, h, grad_ln, p, gradients);
  return 0;
}

struct TiledSaved {
  HeadSaved head;  // without what the loss keeps, nor the norm's output
  DecoderGradients gradients;
};

template <typename Next>
TiledSaved tiled_saved(const Sizes& s, const Next& next) {
  const std::int64_t n = s.tokens(), c = s.hidden;
  TiledSaved t;
  t.head.transform = next({n, c}), t.head.gelu = next({n, c});
  t.head.ln.mean = next({n}, at::kFloat), t.head.ln.rstd = next({n}, at::kFloat);
  t.gradients.input = next({n, c});
  t.gradients.decoder.weight = next({s.vocabulary, c}), t.gradients.decoder.bias = next({s.vocabulary});
  return t;
}

// Up to the loss, which it returns; out of training, nothing is kept.
Tensor tiled_loss(Operands& o, const Sizes& s, bool training) {
  const Bucket p = o.read_bucket();
  const Decoder decoder{s.tied ? o.read_bucket()["wte"] : p["output.weight"], p["output.bias"]};
  const Tensor x = o.read({s.tokens(), s.hidden}), targets = o.read({s.tokens()}, at::kLong);
  TiledSaved saved;
  if (training) {
    saved = tiled_saved(s, [&](at::IntArrayRef shape, auto... type) { return o.write(shape, type...); });
    saved.gradients.loss_scale = o.loss_scale();
  } else {
    saved.head.transform = at::empty_like(x), saved.head.gelu = at::empty_like(x);
  }
  linear_out(saved.head.transform, x, p, "transform");
  at::gelu_out(saved.head.gelu, saved.head.transform, kGelu);
  const NormResult ln = norm(saved.head.gelu, p, "ln", kBertNormEpsilon);
  if (!training) return tiled_cross_entropy(s, ln.out, decoder, targets, nullptr);
  keep_statistics(saved.head.ln, ln);
  return tiled_cross_entropy(s, ln.out, decoder, targets, &saved.gradients);
}

std::int64_t tiled_head_forward(BodyCall& call) {
  Operands o(call);
  return give_result(call, tiled_loss(o, Sizes(o), /*training=*/true));
}

std::int64_t tiled_head_forward_light(BodyCall& call) {
  Operands o(call);
  return give_result(call, tiled_loss(o, Sizes(o), /*training=*/false));
}

std::int64_t tiled_head_backward(BodyCall& call) {
  Operands o(call);
  const Sizes s(o);
  const Bucket p = o.read_bucket();
  if (s.tied) o.read_bucket();
  const Tensor x = o.read({s.tokens(), s.hidden});
  const TiledSaved t = tiled_saved(s, [&](at::IntArrayRef shape, auto... type) { return o.read(shape, type...); });
  const Gradients gradients(o.write_bucket(), s.accumulates);
  const Tensor grad_x = o.write({s.tokens(), s.hidden});
  hand_on_weight_gradient(o, s, gradients, t.gradients.decoder.weight);
  gradients.add("output.bias", t.gradients.decoder.bias);
  transform_backward(grad_x, x, t.head, t.gradients.input, p, gradients);
  return 0;
}

constexpr BodyEntry kBodies[] = {
    {"bert.parameters.load", load_parameters},
    {"bert.batch.load", load_masked_token_batch},
    {"bert.embedding.forward", embedding_forward, kRepeatable},
    {"bert.embedding.backward", embedding_backward, kRepeatable},
    {"bert.block.forward", block_forward, kRepeatable},
    {"bert.block.forward_light", block_forward_light, kRepeatable},
    {"bert.block.recompute", block_recompute, kRepeatable},
    {"bert.block.backward", block_backward, kRepeatable},
    {"bert.head.forward", head_forward},
    {"bert.head.backward", head_backward, kRepeatable},
    {"bert.tiled_head.forward", tiled_head_forward},
    {"bert.tiled_head.forward_light", tiled_head_forward_light},
    {"bert.tiled_head.backward", tiled_head_backward, kRepeatable},
};

}  // namespace

std::span<const BodyEntry> bert_bodies() { return kBodies; }

}  // namespace tandem
