#include "runtime/reference_networks.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>

#include <cmath>
#include <limits>

#include "core/base/errors.hpp"
#include "core/workloads/workload.hpp"
#include "runtime/initial_values.hpp"

namespace tandem {
namespace {

using at::Tensor;

constexpr double kGptEpsilon = 1e-5, kBertEpsilon = 1e-12;

// Hands out the parameters of a bucket one after another.
class Cursor {
 public:
  explicit Cursor(const ReferenceBucket& bucket) : bucket_(bucket) {}
  const Tensor& next() { return bucket_.at(index_++).tensor; }

 private:
  const ReferenceBucket& bucket_;
  std::size_t index_ = 0;
};

void add_norm(ReferenceBucket& bucket, const std::string& name, std::int64_t size) {
  bucket.push_back({name + ".weight", {size}, {}});
  bucket.push_back({name + ".bias", {size}, {}});
}
void add_linear(ReferenceBucket& bucket, const std::string& name, std::int64_t outputs, std::int64_t inputs) {
  bucket.push_back({name + ".weight", {outputs, inputs}, {}});
  bucket.push_back({name + ".bias", {outputs}, {}});
}

struct Norm {
  Tensor weight, bias;
  explicit Norm(Cursor& c) : weight(c.next()), bias(c.next()) {}
  Tensor operator()(const Tensor& x, double epsilon) const {
    return at::layer_norm(x, weight.sizes(), weight, bias, epsilon);
  }
};
struct Linear {
  Tensor weight, bias;
  explicit Linear(Cursor& c) : weight(c.next()), bias(c.next()) {}
  Tensor operator()(const Tensor& x) const { return at::addmm(bias, x, weight.t()); }
};

ReferenceBucket block_bucket(const std::string& name, std::int64_t hidden) {
  ReferenceBucket bucket;
  add_norm(bucket, name + ".ln1", hidden);
  add_norm(bucket, name + ".ln2", hidden);
  add_linear(bucket, name + ".qkv", 3 * hidden, hidden);
  add_linear(bucket, name + ".projection", hidden, hidden);
  add_linear(bucket, name + ".up", 4 * hidden, hidden);
  add_linear(bucket, name + ".down", hidden, 4 * hidden);
  return bucket;
}

// The buckets of a block in tiles (core/workloads/common/gpt_tiles.hpp): those of attention, then of the feed-forward.
std::vector<ReferenceBucket> tiled_block_buckets(const std::string& name, const WorkloadOptions& w) {
  std::vector<ReferenceBucket> buckets;
  const std::int64_t part = w.keys.integer("hidden") / w.keys.integer("linear_tiles");
  for (const bool attends : {true, false})
    for (std::int64_t i = 0; i < w.keys.integer("linear_tiles"); ++i) {
      const std::string tile = name + (attends ? "_attention" : "_feed_forward") + std::to_string(i) + ".";
      ReferenceBucket bucket;
      if (i == 0) add_norm(bucket, tile + (attends ? "ln1" : "ln2"), w.keys.integer("hidden"));
      add_linear(bucket, tile + (attends ? "qkv" : "up"), (attends ? 3 : 4) * part, w.keys.integer("hidden"));
      const std::string second = tile + (attends ? "projection" : "down");
      bucket.push_back({second + ".weight", {w.keys.integer("hidden"), (attends ? 1 : 4) * part}, {}});
      if (i == 0) bucket.push_back({second + ".bias", {w.keys.integer("hidden")}, {}});
      buckets.push_back(std::move(bucket));
    }
  return buckets;
}

// A half of a block in tiles, put together. Rows of each tile's first map are in `parts` groups, such as query, key and
// value.
ReferenceBucket untiled_half(const std::vector<ReferenceBucket>& p, std::size_t begin, std::int64_t tiles,
                             std::int64_t parts) {
  std::vector<Tensor> weights(static_cast<std::size_t>(parts * tiles)), biases = weights, second;
  for (std::int64_t i = 0; i < tiles; ++i) {
    const ReferenceBucket& tile = p[begin + static_cast<std::size_t>(i)];
    const std::size_t first = i == 0 ? 2 : 0;  // after the norm
    for (std::int64_t part = 0; part < parts; ++part) {
      const auto slot = static_cast<std::size_t>(part * tiles + i);
      weights[slot] = tile[first].tensor.chunk(parts, 0)[static_cast<std::size_t>(part)];
      biases[slot] = tile[first + 1].tensor.chunk(parts, 0)[static_cast<std::size_t>(part)];
    }
    second.push_back(tile[first + 2].tensor);
  }
  const ReferenceBucket& head = p[begin];
  return {head[0], head[1], {"", {}, at::cat(weights)}, {"", {}, at::cat(biases)}, {"", {}, at::cat(second, 1)},
          head[5]};
}

// As block_bucket.
ReferenceBucket untiled_block(const std::vector<ReferenceBucket>& p, std::size_t begin, std::int64_t tiles) {
  const ReferenceBucket attention = untiled_half(p, begin, tiles, 3);
  const ReferenceBucket feed_forward = untiled_half(p, begin + static_cast<std::size_t>(tiles), tiles, 1);
  ReferenceBucket block(attention.begin(), attention.begin() + 2);
  block.insert(block.end(), feed_forward.begin(), feed_forward.begin() + 2);
  block.insert(block.end(), attention.begin() + 2, attention.end());
  block.insert(block.end(), feed_forward.begin() + 2, feed_forward.end());
  return block;
}

struct Block {
  explicit Block(const ReferenceBucket& bucket) : Block(Cursor(bucket)) {}
  explicit Block(Cursor c) : ln1(c), ln2(c), qkv(c), projection(c), up(c), down(c) {}
  Norm ln1, ln2;
  Linear qkv, projection, up, down;

  // Of [batch, heads, sequence, head size].
  static Tensor unfused(const Tensor& query, const Tensor& key, const Tensor& value, bool causal) {
    const auto merged = [](const Tensor& heads) { return heads.contiguous().flatten(0, 1); };
    const Tensor keys = merged(key).transpose(1, 2);
    const std::int64_t sequence = query.size(2);
    const Tensor none = at::empty({query.size(0) * query.size(1), sequence, sequence}, query.options());
    Tensor scores =
        at::baddbmm(none, merged(query), keys, /*beta=*/0, 1 / std::sqrt(static_cast<double>(query.size(3))));
    if (causal)
      scores = scores.masked_fill(at::ones({sequence, sequence}, query.options().dtype(at::kBool)).triu(1),
                                  -std::numeric_limits<double>::infinity());
    return at::bmm(at::softmax(scores, 2), merged(value)).view(query.sizes());
  }

  // [tokens, hidden] to [tokens, hidden].
  Tensor attention(const Tensor& x, const WorkloadOptions& w, bool causal) const {
    const std::int64_t hidden = w.keys.integer("hidden");
    const auto heads = [&](const Tensor& rows) {
      return rows.view({w.batch, w.keys.integer("sequence"), w.keys.integer("heads"), hidden / w.keys.integer("heads")})
          .transpose(1, 2);
    };
    const std::vector<Tensor> parts = qkv(x).split(hidden, 1);
    const Tensor query = heads(parts[0]), key = heads(parts[1]), value = heads(parts[2]);
    const Tensor out = w.keys.text("attention") == "unfused"
                           ? unfused(query, key, value, causal)
                           : at::scaled_dot_product_attention(query, key, value, {}, /*dropout=*/0.0, causal);
    return projection(out.transpose(1, 2).reshape({-1, hidden}));
  }
};

// A batch goes where the parameters are.
Tensor beside(const std::vector<ReferenceBucket>& parameters, const Tensor& batch) {
  return batch.to(at::TensorOptions(parameters.front()[0].tensor.device()));
}

Tensor tokens_like(const WorkloadOptions& w) { return at::empty({w.batch, w.keys.integer("sequence")}, at::kLong); }

// From embedded tokens [tokens, hidden] to logits.
Tensor gpt_logits(const WorkloadOptions& w, const std::vector<ReferenceBucket>& p, Tensor x) {
  const std::int64_t tiles = w.keys.integer_or("linear_tiles", 1);                 // gpt_decode has none
  const std::size_t stages = tiles > 1 ? static_cast<std::size_t>(2 * tiles) : 1;  // of a block
  for (std::size_t i = 1; i + 1 < p.size(); i += stages) {
    const Block block(stages > 1 ? untiled_block(p, i, tiles) : p[i]);
    x = x + block.attention(block.ln1(x, kGptEpsilon), w, /*causal=*/true);
    x = x + block.down(at::gelu(block.up(block.ln2(x, kGptEpsilon)), "tanh"));
  }
  Cursor head(p.back());
  const Norm norm(head);
  const Tensor& output = w.keys.flag("tied_embedding") ? p.front()[0].tensor : head.next();
  return norm(x, kGptEpsilon).mm(output.t());
}

class Gpt final : public ReferenceNetwork {
 public:
  explicit Gpt(const WorkloadOptions& w) : w_(w) {}

  std::vector<ReferenceBucket> buckets() const override {
    std::vector<ReferenceBucket> buckets;
    buckets.push_back({{"embedding.wte", {w_.keys.integer("vocabulary"), w_.keys.integer("hidden")}, {}},
                       {"embedding.wpe", {w_.keys.integer("sequence"), w_.keys.integer("hidden")}, {}}});
    for (std::int64_t i = 0; i < w_.keys.integer("layers"); ++i) {
      const std::string name = "block" + std::to_string(i);
      if (w_.keys.integer("linear_tiles") == 1) buckets.push_back(block_bucket(name, w_.keys.integer("hidden")));
      if (w_.keys.integer("linear_tiles") > 1)
        for (ReferenceBucket& tile : tiled_block_buckets(name, w_)) buckets.push_back(std::move(tile));
    }
    ReferenceBucket head;
    add_norm(head, "head.ln_f", w_.keys.integer("hidden"));
    if (!w_.keys.flag("tied_embedding"))
      head.push_back({"head.output.weight", {w_.keys.integer("vocabulary"), w_.keys.integer("hidden")}, {}});
    buckets.push_back(std::move(head));
    return buckets;
  }

  Tensor loss(const std::vector<ReferenceBucket>& p, const DataSource& data, BatchKey key) const override {
    const Tensor inputs = tokens_like(w_), targets = tokens_like(w_);
    data.next_token_batch(key, w_.batch, w_.keys.integer("sequence"), inputs.data_ptr<std::int64_t>(),
                          targets.data_ptr<std::int64_t>());
    const Tensor& wte = p.front()[0].tensor;
    const Tensor x =
        (at::embedding(wte, beside(p, inputs)) + p.front()[1].tensor).view({-1, w_.keys.integer("hidden")});
    return at::cross_entropy_loss(gpt_logits(w_, p, x).to(at::kFloat), beside(p, targets).view(-1));
  }

 private:
  WorkloadOptions w_;
};

class Bert final : public ReferenceNetwork {
 public:
  explicit Bert(const WorkloadOptions& w) : w_(w) {}

  std::vector<ReferenceBucket> buckets() const override {
    std::vector<ReferenceBucket> buckets;
    buckets.push_back({{"embedding.wte", {w_.keys.integer("vocabulary"), w_.keys.integer("hidden")}, {}},
                       {"embedding.wpe", {w_.keys.integer("sequence"), w_.keys.integer("hidden")}, {}}});
    add_norm(buckets.back(), "embedding.ln", w_.keys.integer("hidden"));
    for (std::int64_t i = 0; i < w_.keys.integer("layers"); ++i)
      buckets.push_back(block_bucket("block" + std::to_string(i), w_.keys.integer("hidden")));
    ReferenceBucket head;
    add_linear(head, "head.transform", w_.keys.integer("hidden"), w_.keys.integer("hidden"));
    add_norm(head, "head.ln", w_.keys.integer("hidden"));
    head.push_back({"head.output.bias", {w_.keys.integer("vocabulary")}, {}});
    if (!w_.keys.flag("tied_embedding"))
      head.push_back({"head.output.weight", {w_.keys.integer("vocabulary"), w_.keys.integer("hidden")}, {}});
    buckets.push_back(std::move(head));
    return buckets;
  }

  Tensor loss(const std::vector<ReferenceBucket>& p, const DataSource& data, BatchKey key) const override {
    const Tensor inputs = tokens_like(w_), targets = tokens_like(w_);
    data.masked_token_batch(key, w_.batch, w_.keys.integer("sequence"), w_.keys.integer("vocabulary"),
                            inputs.data_ptr<std::int64_t>(), targets.data_ptr<std::int64_t>());
    Cursor embedding(p.front());
    const Tensor &wte = embedding.next(), &wpe = embedding.next();
    Tensor x = Norm(embedding)((at::embedding(wte, beside(p, inputs)) + wpe).view({-1, w_.keys.integer("hidden")}),
                               kBertEpsilon);
    for (std::size_t i = 1; i + 1 < p.size(); ++i) {
      const Block block(p[i]);
      x = block.ln1(x + block.attention(x, w_, /*causal=*/false), kBertEpsilon);
      x = block.ln2(x + block.down(at::gelu(block.up(x))), kBertEpsilon);
    }
    Cursor head(p.back());
    const Linear transform(head);
    const Norm norm(head);
    const Tensor& bias = head.next();
    const Tensor& output = w_.keys.flag("tied_embedding") ? wte : head.next();
    const Tensor logits = at::addmm(bias, norm(at::gelu(transform(x)), kBertEpsilon), output.t());
    return at::cross_entropy_loss(logits.to(at::kFloat), beside(p, targets).view(-1));
  }

 private:
  WorkloadOptions w_;
};

class Mlp final : public ReferenceNetwork {
 public:
  explicit Mlp(const WorkloadOptions& w) : w_(w) {}

  std::vector<ReferenceBucket> buckets() const override {
    std::vector<ReferenceBucket> buckets(static_cast<std::size_t>(w_.keys.integer("layers") + 1));
    for (std::int64_t i = 0; i < w_.keys.integer("layers"); ++i)
      add_linear(buckets[static_cast<std::size_t>(i)], "layer" + std::to_string(i) + ".relu", w_.keys.integer("hidden"),
                 i == 0 ? w_.keys.integer("inputs") : w_.keys.integer("hidden"));
    add_linear(buckets.back(), "head.output", w_.keys.integer("classes"), w_.keys.integer("hidden"));
    return buckets;
  }

  Tensor loss(const std::vector<ReferenceBucket>& p, const DataSource& data, BatchKey key) const override {
    Tensor x = at::empty({w_.batch, w_.keys.integer("inputs")}, at::kFloat);
    const Tensor labels = at::empty({w_.batch}, at::kLong);
    data.image_batch(key, w_.batch, w_.keys.integer("inputs"), x.data_ptr<float>(), labels.data_ptr<std::int64_t>());
    x = beside(p, x);
    for (std::size_t i = 0; i + 1 < p.size(); ++i) {
      Cursor layer(p[i]);
      x = at::relu(Linear(layer)(x));
    }
    Cursor head(p.back());
    return at::cross_entropy_loss(Linear(head)(x), beside(p, labels));
  }

 private:
  WorkloadOptions w_;
};

}  // namespace

std::int64_t reference_next_token(const WorkloadOptions& options, const std::vector<ReferenceBucket>& parameters,
                                  const at::Tensor& tokens) {
  WorkloadOptions w = options;
  w.batch = 1;
  w.keys["sequence"] = tokens.numel();
  const at::Tensor wpe = parameters.front()[1].tensor.slice(0, 0, w.keys.integer("sequence"));
  const at::Tensor logits = gpt_logits(w, parameters, at::embedding(parameters.front()[0].tensor, tokens) + wpe);
  return logits.select(0, w.keys.integer("sequence") - 1).argmax().item<std::int64_t>();
}

void fill_parameters(std::vector<ReferenceBucket>& buckets, std::uint64_t seed) {
  for (ReferenceBucket& bucket : buckets)
    for (ReferenceParameter& p : bucket) {
      p.tensor = at::empty(p.shape, at::kFloat);
      fill_initial(p.tensor.data_ptr<float>(), p.shape, p.name, seed);
    }
}

std::unique_ptr<ReferenceNetwork> reference_network(const Scenario& scenario) {
  WorkloadOptions w = completed(scenario.workload);
  w.keys.fall_back("linear_tiles", std::int64_t{1});  // gpt_decode has none
  if (w.family == "gpt" || w.family == "gpt_decode") return std::make_unique<Gpt>(w);
  if (w.family == "bert") return std::make_unique<Bert>(w);
  if (w.family == "mlp") return std::make_unique<Mlp>(w);
  throw ConfigError("workload.family: \"" + w.family + "\" has no reference training; allowed: bert, gpt, mlp");
}

}  // namespace tandem
