// Bodies of the gpt family. Work::sizes as TransformerCall reads them; operands in the order of
// core/workloads/common/plan.hpp.
#include <ATen/ops/add.h>
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

constexpr const char* kGelu = "tanh";  // GPT-2's approximation

using Sizes = TransformerCall;

struct BlockSaved {
  NormResult ln1;
  Tensor qkv;
  AttentionResult attention;
  Tensor middle;
  NormResult ln2;
  Tensor up, gelu;
};

// `next` gives the tensor of a shape: the next operand to read, or to write.
template <typename Next>
BlockSaved block_saved(const Sizes& s, const Next& next) {
  const std::int64_t n = s.tokens(), c = s.hidden;
  BlockSaved b;
  b.ln1.mean = next({n}, at::kFloat), b.ln1.rstd = next({n}, at::kFloat), b.ln1.out = next({n, c});
  b.qkv = next({n, 3 * c});
  b.attention = saved_attention(s, next);
  b.middle = next({n, c});
  b.ln2.mean = next({n}, at::kFloat), b.ln2.rstd = next({n}, at::kFloat), b.ln2.out = next({n, c});
  b.up = next({n, s.width()}), b.gelu = next({n, s.width()});
  return b;
}

std::int64_t embedding_forward(BodyCall& call) {
  Operands o(call);
  const Sizes s(o);
  const Bucket parameters = o.read_bucket();
  const Tensor tokens = o.read({s.tokens()}, at::kLong);
  embed_out(o.write({s.batch, s.sequence, s.hidden}), tokens, parameters);
  return 0;
}

std::int64_t embedding_backward(BodyCall& call) {
  Operands o(call);
  const Sizes s(o);
  const Tensor grad = o.read({s.batch, s.sequence, s.hidden});
  const Tensor tokens = o.read({s.batch, s.sequence}, at::kLong);
  const Tensor tied = s.tied ? o.read({s.vocabulary, s.hidden}) : Tensor();
  embed_backward(Gradients(o.write_bucket(), s.accumulates), grad, tokens, s.vocabulary, tied);
  return 0;
}

// All that backward needs, up to the gelu.
void block_forward_saved(const Sizes& s, const Tensor& x, const Bucket& p, const BlockSaved& b) {
  norm_out(b.ln1, x, p, "ln1", kGptNormEpsilon);
  linear_out(b.qkv, b.ln1.out, p, "qkv");
  attention_out(b.attention, b.qkv, s.attention(/*causal=*/true));
  linear_out(b.middle, b.attention.out, p, "projection");
  b.middle.add_(x);
  norm_out(b.ln2, b.middle, p, "ln2", kGptNormEpsilon);
  linear_out(b.up, b.ln2.out, p, "up");
  Tensor gelu = b.gelu;
  at::gelu_out(gelu, b.up, kGelu);
}

std::int64_t block_forward(BodyCall& call) {
  Operands o(call);
  const Sizes s(o);
  const Bucket parameters = o.read_bucket();
  const Tensor x = o.read({s.tokens(), s.hidden});
  Tensor out = o.write({s.tokens(), s.hidden});
  const BlockSaved b = block_saved(s, [&](at::IntArrayRef shape, auto... type) { return o.write(shape, type...); });
  block_forward_saved(s, x, parameters, b);
  linear_out(out, b.gelu, parameters, "down");
  out.add_(b.middle);
  return 0;
}

std::int64_t block_recompute(BodyCall& call) {
  Operands o(call);
  const Sizes s(o);
  const Bucket parameters = o.read_bucket();
  const Tensor x = o.read({s.tokens(), s.hidden});
  block_forward_saved(s, x, parameters,
                      block_saved(s, [&](at::IntArrayRef shape, auto... type) { return o.write(shape, type...); }));
  return 0;
}

// middle = x + attention(norm(x)), keeping nothing.
void attention_half_light(const Tensor& middle, const Sizes& s, const Tensor& x, const Bucket& p) {
  Tensor qkv = at::empty({s.tokens(), 3 * s.hidden}, x.options());
  linear_out(qkv, norm(x, p, "ln1", kGptNormEpsilon).out, p, "qkv");
  const Tensor out = attention(qkv, s.attention(/*causal=*/true)).out;
  linear_out(middle, out, p, "projection");
  middle.add_(x);
}

std::int64_t block_forward_light(BodyCall& call) {
  Operands o(call);
  const Sizes s(o);
  const Bucket p = o.read_bucket();
  const Tensor x = o.read({s.tokens(), s.hidden});
  Tensor out = o.write({s.tokens(), s.hidden});
  const Tensor middle = at::empty_like(x);
  attention_half_light(middle, s, x, p);
  Tensor up = at::empty({s.tokens(), s.width()}, x.options());
  linear_out(up, norm(middle, p, "ln2", kGptNormEpsilon).out, p, "up");
  at::gelu_out(up, up, kGelu);
  linear_out(out, up, p, "down");
  out.add_(middle);
  return 0;
}

// From the output's gradient to that of `middle`, in `grad_middle`.
void feed_forward_backward(Tensor grad_middle, const Sizes& s, const Tensor& grad, const Bucket& p, const BlockSaved& b,
                           const Gradients& gradients) {
  const Tensor grad_ln2 = at::empty_like(grad);
  {
    Tensor grad_up = at::empty({s.tokens(), s.width()}, grad.options());
    linear_input_gradient(grad_up, grad, p["down.weight"]);
    gradients.linear("down", grad, b.gelu);
    at::gelu_backward_out(grad_up, grad_up, b.up, kGelu);
    linear_input_gradient(grad_ln2, grad_up, p["up.weight"]);
    gradients.linear("up", grad_up, b.ln2.out);
  }
  at::add_out(grad_middle, grad, gradients.norm("ln2", grad_ln2, b.middle, b.ln2.mean, b.ln2.rstd, p));
}

// From the gradient of `middle` to that of the first norm's output.
Tensor attention_half_backward(const Sizes& s, const Tensor& grad_middle, const Bucket& p, const BlockSaved& b,
                               const Gradients& gradients) {
  const Tensor grad_qkv = projected_attention_backward(grad_middle, p, b.qkv, b.attention, b.ln1.out,
                                                       s.attention(/*causal=*/true), gradients);
  Tensor grad_ln1 = at::empty_like(b.ln1.out);
  linear_input_gradient(grad_ln1, grad_qkv, p["qkv.weight"]);
  return grad_ln1;
}

std::int64_t block_backward(BodyCall& call) {
  Operands o(call);
  const Sizes s(o);
  const Tensor grad = o.read({s.tokens(), s.hidden});
  const Bucket p = o.read_bucket();
  const Tensor x = o.read({s.tokens(), s.hidden});
  const BlockSaved b = block_saved(s, [&](at::IntArrayRef shape, auto... type) { return o.read(shape, type...); });
  const Gradients gradients(o.write_bucket(), s.accumulates);
  Tensor grad_x = o.write({s.tokens(), s.hidden});
  feed_forward_backward(grad_x, s, grad, p, b, gradients);
  const Tensor grad_ln1 = attention_half_backward(s, grad_x, p, b, gradients);
  grad_x.add_(gradients.norm("ln1", grad_ln1, x, b.ln1.mean, b.ln1.rstd, p));
  return 0;
}

std::int64_t head_forward(BodyCall& call) {
  Operands o(call);
  const Sizes s(o);
  const std::int64_t n = s.tokens(), c = s.hidden;
  const Bucket p = o.read_bucket();
  const Tensor weight = s.tied ? o.read_bucket()["wte"] : p["output.weight"];
  const Tensor x = o.read({n, c}), targets = o.read({n}, at::kLong);
  const Tensor mean = o.write({n}, at::kFloat), rstd = o.write({n}, at::kFloat), ln = o.write({n, c});
  const Tensor log_probabilities = o.write({n, s.vocabulary}, at::kFloat), target_count = o.write({}, at::kFloat);
  norm_out({ln, mean, rstd}, x, p, "ln_f", kGptNormEpsilon);
  return give_result(call, cross_entropy(log_probabilities, target_count, at::mm(ln, weight.t()), targets));
}

std::int64_t head_backward(BodyCall& call) {
  Operands o(call);
  const Sizes s(o);
  const std::int64_t n = s.tokens(), c = s.hidden;
  const Bucket p = o.read_bucket();
  const Tensor weight = s.tied ? o.read_bucket()["wte"] : p["output.weight"];
  const Tensor x = o.read({n, c}), mean = o.read({n}, at::kFloat), rstd = o.read({n}, at::kFloat), ln = o.read({n, c});
  const Tensor log_probabilities = o.read({n, s.vocabulary}, at::kFloat), target_count = o.read({}, at::kFloat);
  const Tensor targets = o.read({n}, at::kLong);
  const Gradients gradients(o.write_bucket(), s.accumulates);
  const Tensor grad_x = o.write({n, c});
  const Tensor grad_ln = at::empty_like(ln);
  {
    const Tensor grad_logits = at::empty(log_probabilities.sizes(), x.options());
    cross_entropy_backward(grad_logits, log_probabilities, targets, target_count, s.micro_batches, o.loss_scale());
    linear_input_gradient(grad_ln, grad_logits, weight);
    if (s.tied) {
      Tensor contribution = o.write({s.vocabulary, c});
      at::mm_out(contribution, grad_logits.t(), ln);
    } else {
      gradients.weight("output.weight", grad_logits, ln);
    }
  }
  grad_x.copy_(gradients.norm("ln_f", grad_ln, x, mean, rstd, p));
  return 0;
}

// Up to the loss, which it returns.
Tensor tiled_loss(Operands& o, const Sizes& s, bool training) {
  const std::int64_t n = s.tokens(), c = s.hidden;
  const Bucket p = o.read_bucket();
  const Tensor weight = s.tied ? o.read_bucket()["wte"] : p["output.weight"];
  const Tensor x = o.read({n, c}), targets = o.read({n}, at::kLong);
  const NormResult ln = norm(x, p, "ln_f", kGptNormEpsilon);
  if (!training) return tiled_cross_entropy(s, ln.out, {weight, {}}, targets, nullptr);
  const Tensor mean = o.write({n}, at::kFloat), rstd = o.write({n}, at::kFloat);
  keep_statistics({{}, mean, rstd}, ln);
  const Tensor grad_ln = o.write({n, c}), grad_weight = o.write({s.vocabulary, c});
  const DecoderGradients gradients{grad_ln, {grad_weight, {}}, o.loss_scale()};
  return tiled_cross_entropy(s, ln.out, {weight, {}}, targets, &gradients);
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
  const std::int64_t n = s.tokens(), c = s.hidden;
  const Bucket p = o.read_bucket();
  if (s.tied) o.read_bucket();
  const Tensor x = o.read({n, c}), mean = o.read({n}, at::kFloat), rstd = o.read({n}, at::kFloat);
  const Tensor grad_ln = o.read({n, c}), grad_weight = o.read({s.vocabulary, c});
  const Gradients gradients(o.write_bucket(), s.accumulates);
  const Tensor grad_x = o.write({n, c});
  hand_on_weight_gradient(o, s, gradients, grad_weight);
  grad_x.copy_(gradients.norm("ln_f", grad_ln, x, mean, rstd, p));
  return 0;
}

constexpr BodyEntry kBodies[] = {
    {"gpt.parameters.load", load_parameters},
    {"gpt.batch.load", load_next_token_batch},
    {"gpt.embedding.forward", embedding_forward, kRepeatable},
    {"gpt.embedding.backward", embedding_backward, kRepeatable},
    {"gpt.block.forward", block_forward, kRepeatable},
    {"gpt.block.forward_light", block_forward_light, kRepeatable},
    {"gpt.block.recompute", block_recompute, kRepeatable},
    {"gpt.block.backward", block_backward, kRepeatable},
    {"gpt.head.forward", head_forward},
    {"gpt.head.backward", head_backward, kRepeatable},
    {"gpt.tiled_head.forward", tiled_head_forward},
    {"gpt.tiled_head.forward_light", tiled_head_forward_light},
    {"gpt.tiled_head.backward", tiled_head_backward, kRepeatable},
};

}  // namespace

std::span<const BodyEntry> gpt_bodies() { return kBodies; }

}  // namespace tandem
