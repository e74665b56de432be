#include "core/workloads/common/gpt_modules.hpp"

#include "core/workloads/common/language.hpp"

namespace tandem {
namespace {

constexpr double kEpsilon = 1e-5;
constexpr const char* kGelu = "gelu_tanh";  // GPT-2's approximation

class Tiles {
 public:
  Tiles(NetworkBuilder& n, const TransformerSizes& s, std::int64_t tiles) : n_(n), s_(s), tiles_(tiles) {}
  Signal half(const std::string& name, const Signal& x, bool attends) {
    Signal sum = x, norm;
    for (std::int64_t i = 0; i < tiles_; ++i) {
      const auto program = [&](ModuleScope& m) {
        const LocalId so_far = m.in("sum", sum);
        const LocalId normed = i == 0 ? m.layer_norm(attends ? "ln1" : "ln2", so_far, kEpsilon) : m.in("norm", norm);
        const LocalId part = m.linear(attends ? "projection" : "down", inner(m, normed, attends), s_.hidden, i == 0);
        m.output(m.add("output", so_far, part));
        if (i == 0) m.output(normed);
      };
      sum = n_.module(indexed(name, i), attends ? "attention_tile" : "feed_forward_tile", program,
                      /*recomputable=*/true);
      if (i == 0) norm = n_.output(1);
    }
    return sum;
  }

 private:
  LocalId inner(ModuleScope& m, LocalId normed, bool attends) const {
    if (!attends) return m.activation("gelu", m.linear("up", normed, s_.width() / tiles_), kGelu);
    const LocalId qkv = m.linear("qkv", normed, 3 * s_.hidden / tiles_);
    return m.attention("attention", qkv, {s_.heads / tiles_, s_.sequence, /*causal=*/true, s_.fused});
  }
  NetworkBuilder& n_;
  const TransformerSizes& s_;
  std::int64_t tiles_;
};

}  // namespace

Signal gpt_embedding(NetworkBuilder& n, const TransformerSizes& s, const Signal& tokens) {
  return n.module("embedding", "embedding", [&](ModuleScope& m) {
    const LocalId rows = m.embedding("wte", m.in("tokens", tokens), s.vocabulary, s.hidden);
    m.output(m.positions("wpe", rows, s.sequence));
  });
}

Signal gpt_block(NetworkBuilder& n, const TransformerSizes& s, const std::string& name, const Signal& input) {
  const auto program = [&](ModuleScope& m) {
    const LocalId x = m.in("input", input);
    const LocalId qkv = m.linear("qkv", m.layer_norm("ln1", x, kEpsilon), 3 * s.hidden);
    const LocalId attention = m.attention("attention", qkv, {s.heads, s.sequence, /*causal=*/true, s.fused, s.keys});
    const LocalId middle = m.add("middle", x, m.linear("projection", attention, s.hidden));
    const LocalId up = m.linear("up", m.layer_norm("ln2", middle, kEpsilon), s.width());
    m.output(m.add("output", middle, m.linear("down", m.activation("gelu", up, kGelu), s.hidden)));
    m.weights_first({"ln1", "ln2"});
  };
  return n.module(name, "block", program, /*recomputable=*/true);
}

Signal gpt_tiled_block(NetworkBuilder& n, const TransformerSizes& s, std::int64_t tiles, const std::string& name,
                       const Signal& x) {
  Tiles t(n, s, tiles);
  return t.half(name + "_feed_forward", t.half(name + "_attention", x, true), false);
}

void gpt_head(NetworkBuilder& n, const TransformerSizes& s, const Signal& x, const Signal& targets) {
  n.module("head", s.loss_tiles > 1 ? "tiled_head" : "head", [&](ModuleScope& m) {
    const LocalId shared = s.tied ? m.in("output.weight", n.weight("embedding", "wte")) : kNone;
    const LocalId norm = m.layer_norm("ln_f", m.in("input", x), kEpsilon);
    m.output(language_loss(m, s, norm, m.in("targets", targets), shared, /*bias=*/false));
  });
}

}  // namespace tandem
