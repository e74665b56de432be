// Bodies of gpt_decode. Work::sizes: tokens, position of the first, hidden, heads, vocabulary, cache capacity, tied.
// Reads: parameter, then embedding: tokens; block: input, cache; sample: [token embedding if tied], input.
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/native_layer_norm.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/batches.hpp"
#include "runtime/bodies/common/load.hpp"
#include "runtime/bodies/common/operands.hpp"
#include "runtime/data.hpp"

namespace tandem {
namespace {

using at::Tensor;

struct Sizes {
  explicit Sizes(const Operands& o)
      : tokens(o.size(0)),
        position(o.size(1)),
        hidden(o.size(2)),
        heads(o.size(3)),
        vocabulary(o.size(4)),
        capacity(o.size(5)),
        tied(o.size(6) != 0) {}
  std::int64_t tokens, position, hidden, heads, vocabulary, capacity;
  bool tied;
  std::int64_t head_size() const { return hidden / heads; }
};

std::int64_t load_prompt(BodyCall& call) {
  const std::int64_t tokens = call.work.sizes.at(0);
  std::vector<std::int64_t> targets(static_cast<std::size_t>(tokens));  // a batch brings them; nothing is trained here
  call.data.next_token_batch({0, 0, call.rank}, 1, tokens, reinterpret_cast<std::int64_t*>(call.writes[0]),
                             targets.data());
  check_tokens(reinterpret_cast<const std::int64_t*>(call.writes[0]), tokens, call.work.sizes.at(4));
  return 0;
}

void linear_out(at::Tensor out, const Tensor& x, const Bucket& p, const std::string& name) {
  at::addmm_out(out, p[name + ".bias"], x, p[name + ".weight"].t());
}

Tensor norm(const Tensor& x, const Bucket& p, const std::string& name) {
  constexpr double kEpsilon = 1e-5;
  return std::get<0>(at::native_layer_norm(x, {x.size(1)}, p[name + ".weight"], p[name + ".bias"], kEpsilon));
}

std::int64_t embedding_forward(BodyCall& call) {
  Operands o(call);
  const Sizes s(o);
  const Bucket p = o.read_bucket();
  const Tensor tokens = o.read({s.tokens}, at::kLong);
  Tensor rows = o.write({s.tokens, s.hidden});
  at::index_select_out(rows, p["wte"], 0, tokens);
  rows.add_(p["wpe"].slice(0, s.position, s.position + s.tokens));
  return 0;
}

// Appends the new keys and values to the cache [2, capacity, hidden], then attends over all of it. A prompt is masked;
// a single token sees everything before it.
Tensor cached_attention(const Sizes& s, const Tensor& qkv, const Tensor& cache) {
  const std::int64_t end = s.position + s.tokens;
  cache.select(0, 0).slice(0, s.position, end).copy_(qkv.slice(1, s.hidden, 2 * s.hidden));
  cache.select(0, 1).slice(0, s.position, end).copy_(qkv.slice(1, 2 * s.hidden, 3 * s.hidden));
  const auto heads = [&](const Tensor& rows) {
    return rows.unflatten(1, {s.heads, s.head_size()}).transpose(0, 1).unsqueeze(0);
  };
  const auto [out, logsumexp] = at::_scaled_dot_product_flash_attention_for_cpu(
      heads(qkv.slice(1, 0, s.hidden)), heads(cache.select(0, 0).slice(0, 0, end)),
      heads(cache.select(0, 1).slice(0, 0, end)), /*dropout=*/0.0, /*causal=*/s.tokens > 1);
  return out.transpose(1, 2).reshape({s.tokens, s.hidden});
}

std::int64_t block_forward(BodyCall& call) {
  Operands o(call);
  const Sizes s(o);
  const Bucket p = o.read_bucket();
  const Tensor x = o.read({s.tokens, s.hidden}), out = o.write({s.tokens, s.hidden});
  const Tensor cache = o.write({2, s.capacity, s.hidden});  // in place: the read is at the same address
  const Tensor middle = at::empty_like(x);
  {
    const Tensor qkv = at::empty({s.tokens, 3 * s.hidden}, x.options());
    linear_out(qkv, norm(x, p, "ln1"), p, "qkv");
    linear_out(middle, cached_attention(s, qkv, cache), p, "projection");
  }
  middle.add_(x);
  Tensor up = at::empty({s.tokens, 4 * s.hidden}, x.options());
  linear_out(up, norm(middle, p, "ln2"), p, "up");
  at::gelu_out(up, up, "tanh");
  linear_out(out, up, p, "down");
  out.add_(middle);
  return 0;
}

std::int64_t sample(BodyCall& call) {
  Operands o(call);
  const Sizes s(o);
  const Bucket p = o.read_bucket();
  const Tensor weight = s.tied ? o.read_bucket()["wte"] : p["output.weight"];
  const Tensor x = o.read({s.tokens, s.hidden});
  const Tensor last = norm(x.slice(0, s.tokens - 1, s.tokens), p, "ln_f");
  const Tensor logits = at::mm(last, weight.t());
  const float* first = logits.const_data_ptr<float>();
  const std::int64_t token = std::max_element(first, first + s.vocabulary) - first;  // the first of equals
  *reinterpret_cast<std::int64_t*>(call.writes[0]) = token;
  return token;
}

constexpr BodyEntry kBodies[] = {
    {"gpt_decode.prompt.load", load_prompt},
    {"gpt_decode.embedding.forward", embedding_forward},
    {"gpt_decode.block.forward", block_forward},
    {"gpt_decode.sample", sample},
};

}  // namespace

std::span<const BodyEntry> gpt_decode_bodies() { return kBodies; }

}  // namespace tandem
