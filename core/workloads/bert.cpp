// BERT style encoder: learned positions, norms after attention and feed-forward, gelu (erf), bidirectional attention,
// and the mean cross entropy of masked tokens through BERT's output head. One segment, so no segment embedding.
#include "core/workloads/common/language.hpp"
#include "core/workloads/common/network_plan.hpp"
#include "core/workloads/common/options.hpp"
#include "core/workloads/common/training_source.hpp"
#include "core/workloads/workload.hpp"

namespace tandem {
namespace {

const FamilyKeys kKeys = {transformer_keys(), recomputing_keys()};

constexpr double kEpsilon = 1e-12;
constexpr const char* kGelu = "gelu";  // by the error function

Signal embedding(NetworkBuilder& n, const TransformerSizes& s, const Signal& tokens) {
  return n.module("embedding", "embedding", [&](ModuleScope& m) {
    const LocalId rows = m.embedding("wte", m.in("tokens", tokens), s.vocabulary, s.hidden);
    m.output(m.layer_norm("ln", m.positions("wpe", rows, s.sequence), kEpsilon));
  });
}

Signal block(NetworkBuilder& n, const TransformerSizes& s, const std::string& name, const Signal& input) {
  const auto program = [&](ModuleScope& m) {
    const LocalId x = m.in("input", input), qkv = m.linear("qkv", x, 3 * s.hidden);
    const LocalId attention = m.attention("attention", qkv, {s.heads, s.sequence, /*causal=*/false, s.fused});
    const LocalId sum = m.add("attention_sum", x, m.linear("projection", attention, s.hidden));
    const LocalId norm = m.layer_norm("ln1", sum, kEpsilon);
    const LocalId gelu = m.activation("gelu", m.linear("up", norm, s.width()), kGelu);
    m.output(m.layer_norm("ln2", m.add("feed_forward_sum", norm, m.linear("down", gelu, s.hidden)), kEpsilon));
    m.weights_first({"ln1", "ln2"});
  };
  return n.module(name, "block", program, /*recomputable=*/true);
}

void head(NetworkBuilder& n, const TransformerSizes& s, const Signal& x, const Signal& targets) {
  n.module("head", s.loss_tiles > 1 ? "tiled_head" : "head", [&](ModuleScope& m) {
    const LocalId shared = s.tied ? m.in("output.weight", n.weight("embedding", "wte")) : kNone;
    const LocalId transform = m.linear("transform", m.in("input", x), s.hidden);
    const LocalId norm = m.layer_norm("ln", m.activation("gelu", transform, kGelu), kEpsilon);
    m.output(language_loss(m, s, norm, m.in("targets", targets), shared, /*bias=*/true));
    m.weights_first({"transform", "ln", "output.bias"});
  });
}

std::unique_ptr<StepSource> make_bert(const Scenario& scenario, const GraphRequest& request) {
  require_training_options(scenario);
  const TransformerSizes s = transformer_sizes(scenario);
  NetworkBuilder n("bert", s.type);
  const auto [tokens, targets] = token_batch(n, s);
  Signal x = embedding(n, s, tokens);
  for (std::int64_t i = 0; i < s.layers; ++i) x = block(n, s, indexed("block", i), x);
  head(n, s, x, targets);
  return std::make_unique<TrainingSource>(network_plan(n.finish(), scenario, token_load("masked_tokens", s)), scenario,
                                          request);
}

}  // namespace
}  // namespace tandem

TANDEM_WORKLOAD(bert, make_bert, kKeys, "Encoder-only transformer, trained on masked tokens")
