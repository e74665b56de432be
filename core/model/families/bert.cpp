// BERT style encoder: learned positions, norms after attention and feed-forward, gelu (erf), bidirectional attention,
// and the mean cross entropy of masked tokens through BERT's output head. One segment, so no segment embedding.
#include "core/model/families/common/family.hpp"
#include "core/model/families/common/gpt_modules.hpp"
#include "core/model/families/common/language.hpp"

namespace tandem {
namespace {

const FamilyKeys kKeys = {joined({transformer_keys(), {dropout_key()}}),
                          recomputing_keys(),
                          {},
                          {{"layers", 2}, {"hidden", 48}, {"heads", 3}, {"vocabulary", 257}, {"sequence", 40}}};

constexpr double kEpsilon = 1e-12;
constexpr const char* kGelu = "gelu";  // by the error function

Signal embedding(NetworkBuilder& n, const GptSizes& s, const Signal& tokens) {
  return n.module("embedding", "embedding", [&](ModuleScope& m) {
    const LocalId rows = m.embedding("wte", m.in("tokens", tokens), s.vocabulary, s.hidden, s.embedding_padding());
    const LocalId norm = m.layer_norm("ln", m.positions("wpe", rows, s.sequence), kEpsilon);
    m.output(dropped(m, "dropout", norm, s.dropout, 0));
  });
}

Signal block(NetworkBuilder& n, const GptSizes& s, const std::string& name, const Signal& input) {
  const auto program = [&](ModuleScope& m) {
    const LocalId x = m.in("input", input), qkv = m.linear("qkv", x, 3 * s.hidden);
    const LocalId attention = m.attention("attention", qkv, {s.heads, s.sequence, /*causal=*/false, s.fused});
    const LocalId projection = m.linear("projection", attention, s.hidden);
    const LocalId sum = m.add("attention_sum", x, dropped(m, "attention_dropout", projection, s.dropout, 0));
    const LocalId norm = m.layer_norm("ln1", sum, kEpsilon);
    const LocalId gelu = m.activation("gelu", m.linear("up", norm, s.width()), kGelu);
    const LocalId down = dropped(m, "feed_forward_dropout", m.linear("down", gelu, s.hidden), s.dropout, 1);
    m.output(m.layer_norm("ln2", m.add("feed_forward_sum", norm, down), kEpsilon));
    m.weights_first({"ln1", "ln2"});
  };
  return n.module(name, "block", program, /*recomputable=*/true);
}

void head(NetworkBuilder& n, const GptSizes& s, const Signal& x, const Signal& targets) {
  n.module("head", s.loss_tiles > 1 ? "tiled_head" : "head", [&](ModuleScope& m) {
    const LocalId shared = s.tied ? m.in("output.weight", n.weight("embedding", "wte")) : kNone;
    const LocalId transform = m.linear("transform", m.in("input", x), s.hidden);
    const LocalId norm = m.layer_norm("ln", m.activation("gelu", transform, kGelu), kEpsilon);
    m.output(language_loss(m, {s.vocabulary, s.vocabulary_padding, s.loss_tiles}, norm, m.in("targets", targets),
                           shared, /*bias=*/true));
    m.weights_first({"transform", "ln", "output.bias"});
  });
}

Network bert(const WorkloadOptions& w) {
  GptSizes s(transformer_sizes(w));
  s.dropout = w.keys.number("dropout");
  NetworkBuilder n("bert", s.type);
  const auto [tokens, targets] = token_batch(n, s, "masked_tokens");
  Signal x = embedding(n, s, tokens);
  for (std::int64_t i = 0; i < s.layers; ++i) x = block(n, s, indexed("block", i), x);
  head(n, s, x, targets);
  return n.finish();
}

}  // namespace
}  // namespace tandem

TANDEM_FAMILY(bert, bert, kKeys, "Encoder-only transformer, trained on masked tokens")
