// A gpt's greedy decoding in plain functional LibTorch, without a cache.
#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include "core/workloads/workload.hpp"
#include "runtime/reference/networks.hpp"
#include "runtime/reference/reference.hpp"

namespace tandem {
namespace {

using at::Tensor;

// A bucket's parameters, one after another.
class Cursor {
 public:
  explicit Cursor(const ReferenceBucket& bucket) : bucket_(bucket) {}
  const Tensor& next() { return bucket_.at(index_++).tensor; }

 private:
  const ReferenceBucket& bucket_;
  std::size_t index_ = 0;
};

struct Norm {
  Tensor weight, bias;
  explicit Norm(Cursor& c) : weight(c.next()), bias(c.next()) {}
  Tensor operator()(const Tensor& x) const { return at::layer_norm(x, weight.sizes(), weight, bias, 1e-5); }
};
struct Linear {
  Tensor weight, bias;
  explicit Linear(Cursor& c) : weight(c.next()), bias(c.next()) {}
  Tensor operator()(const Tensor& x) const { return at::addmm(bias, x, weight.t()); }
};

struct Block {
  explicit Block(Cursor c) : ln1(c), ln2(c), qkv(c), projection(c), up(c), down(c) {}
  Norm ln1, ln2;
  Linear qkv, projection, up, down;

  // Of [tokens, hidden].
  Tensor attention(const Tensor& x, std::int64_t heads) const {
    const std::int64_t hidden = x.size(1);
    const auto of_heads = [&](const Tensor& rows) { return rows.view({1, -1, heads, hidden / heads}).transpose(1, 2); };
    const std::vector<Tensor> parts = qkv(x).split(hidden, 1);
    const Tensor out = at::scaled_dot_product_attention(of_heads(parts[0]), of_heads(parts[1]), of_heads(parts[2]), {},
                                                        /*dropout_p=*/0.0, /*is_causal=*/true);
    return projection(out.transpose(1, 2).reshape({-1, hidden}));
  }
};

// The likeliest next token after `tokens` [length].
std::int64_t next_token(const KeyValues& k, const std::vector<ReferenceBucket>& parameters, const Tensor& tokens) {
  const Tensor &wte = parameters.front()[0].tensor, &wpe = parameters.front()[1].tensor;
  Tensor x = at::embedding(wte, tokens) + wpe.slice(0, 0, tokens.numel());
  for (std::size_t i = 1; i + 1 < parameters.size(); ++i) {
    const Block block{Cursor(parameters[i])};
    x = x + block.attention(block.ln1(x), k.integer("heads"));
    x = x + block.down(at::gelu(block.up(block.ln2(x)), "tanh"));
  }
  Cursor head(parameters.back());
  const Norm norm(head);
  const Tensor& output = k.flag("tied_embedding") ? wte : head.next();
  return norm(x).mm(output.t()).select(0, tokens.numel() - 1).argmax().item<std::int64_t>();
}

}  // namespace

std::vector<std::int64_t> decode_reference(const Scenario& scenario, const DataSource& data) {
  Scenario trained = scenario;
  trained.workload.family = "gpt";  // which has the same parameters
  trained.workload.keys[kVocabularyMultiple] = 1;
  trained.workload = completed(trained.workload);
  const KeyValues& k = trained.workload.keys;
  std::vector<ReferenceBucket> parameters = reference_network(trained).buckets();
  fill_parameters(parameters, scenario.seed);
  const std::int64_t prompt = k.integer("prompt"), stop = k.integer_or("stop_token", kNone);
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(prompt + k.integer("new_tokens"))), targets(tokens.size());
  data.next_token_batch({0, 0, 0}, 1, prompt, tokens.data(), targets.data());
  std::vector<std::int64_t> sampled;
  for (std::int64_t length = prompt; length < std::ssize(tokens); ++length) {
    const at::Tensor so_far = at::from_blob(tokens.data(), {length}, at::kLong);
    sampled.push_back(next_token(k, parameters, so_far));
    tokens[static_cast<std::size_t>(length)] = sampled.back();
    if (stop != kNone && sampled.back() == stop) break;
  }
  return sampled;
}

}  // namespace tandem
