// Mixture of experts (Shazeer et al. 2017; Fedus et al. 2022, arXiv 2101.03961; Mixtral, arXiv 2401.04088): Llama's
// blocks, in which a router sends each token to a few of the feed-forward layers. Experts have room for so many tokens
// each; who finds none passes by.
#include <algorithm>
#include <cmath>

#include "core/model/families/common/decoder.hpp"
#include "core/model/families/common/family.hpp"
#include "core/model/families/common/language.hpp"

namespace tandem {
namespace {

const FamilyKeys kKeys = {
    joined({decoder_keys(),
            {size_key("experts", {1, 4096}, "Feed-forward layers of a block."),
             size_key("experts_per_token", {1, 64}, 2, "Experts that a token is sent to."),
             number_key("capacity_factor", 0.01, 1000, 1.25, "Room of an expert, over its even share of the tokens."),
             number_key("balance", 0, 1000, 0.01, "Weight of the loss that keeps experts evenly used; 0: none.")}}),
    recomputing_keys(),
    {},
    {{"layers", 2},
     {"hidden", 48},
     {"heads", 6},
     {"key_heads", 2},
     {"feed_forward", 56},
     {"vocabulary", 257},
     {"sequence", 37},
     {"experts", 5}}};

struct Experts {
  Experts(const KeyValues& k, const DecoderSizes& s)
      : count(k.integer("experts")), choices(k.integer("experts_per_token")), balance(k.number("balance")) {
    require_option(choices <= count, "experts_per_token, experts",
                   std::to_string(choices) + " of " + std::to_string(count) + " experts", "allowed: at most experts");
    const double even = static_cast<double>(s.tokens() * choices) / static_cast<double>(count);
    capacity = std::clamp<std::int64_t>(std::llround(std::ceil(even * k.number("capacity_factor"))), 1, s.tokens());
    require_product("experts, hidden, feed_forward", {count, s.hidden, s.feed_forward});
    require_product("experts, capacity_factor, feed_forward", {count, capacity, std::max(s.hidden, s.feed_forward)});
  }
  std::int64_t count, choices, capacity = 0;
  double balance;
};

LocalId by_expert(ModuleBuilder& m, const std::string& name, LocalId x, const Experts& e, std::int64_t outputs) {
  return m.call(name, "expert_linear", {x}, {{"experts", e.count}, {"outputs", outputs}});
}

LocalId mixture(ModuleScope& m, const DecoderSizes& s, const Experts& e, LocalId norm) {
  const LocalId logits = m.linear("router", norm, e.count, false);
  if (e.balance > 0) m.call("balance", "load_balance", {logits}, {{"weight", e.balance}});
  const LocalId weights = m.call("route", "route", {logits},
                                 {{"choices", e.choices}, {"capacity", e.capacity}, {"normalise", std::int64_t{1}}});
  const LocalId places = weights + 1;
  const LocalId x = m.call("dispatch", "dispatch", {norm, places}, {{"slots", e.count * e.capacity}});
  const LocalId gate = m.activation("activation", by_expert(m, "gate", x, e, s.feed_forward), s.gate);
  const LocalId gated = multiply(m, "gated", gate, by_expert(m, "up", x, e, s.feed_forward));
  return m.call("combine", "combine", {by_expert(m, "down", gated, e, s.hidden), places, weights}, {});
}

Network moe(const WorkloadOptions& w) {
  const DecoderSizes s(w);
  const Experts e(w.keys, s);
  NetworkBuilder n("moe", s.type);
  const auto [tokens, targets] = token_batch(n, s, "next_tokens");
  Signal x = decoder_embedding(n, s, tokens);
  for (std::int64_t i = 0; i < s.layers; ++i)
    x = decoder_block(n, s, i, x, [&](ModuleScope& m, LocalId norm) { return mixture(m, s, e, norm); });
  decoder_head(n, s, x, targets);
  return n.finish();
}

}  // namespace
}  // namespace tandem

TANDEM_FAMILY(moe, moe, kKeys, "Mixture-of-experts decoder (Mixtral), trained on the next token")
