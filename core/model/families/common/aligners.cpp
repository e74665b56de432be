#include "core/model/families/common/aligners.hpp"

#include "core/model/families/common/checks.hpp"
#include "core/model/families/common/layers.hpp"

namespace tandem {
namespace {

constexpr double kEpsilon = 1e-5;

LocalId first_tokens(ModuleScope& m, const std::string& name, LocalId x, std::int64_t sequence, std::int64_t count) {
  return m.call(name, "select_token", {x}, {{"sequence", sequence}, {"index", std::int64_t{0}}, {"count", count}});
}

LocalId resampled(ModuleScope& m, LocalId x, std::int64_t tokens, const AlignerOptions& o) {
  const std::int64_t width = m.shape(x).columns(), all = o.queries + tokens;
  const LocalId seen = m.call("queries", "prepend_token", {x}, {{"sequence", tokens}, {"count", o.queries}});
  const LocalId norm = m.layer_norm("attention_norm", seen, kEpsilon);
  const LocalId asking = first_tokens(m, "asking", norm, all, o.queries);
  const AttendOptions options = {.heads = o.heads, .queries = o.queries, .keys = all};
  const LocalId attended =
      attention_of(m, "attention", asking, norm, width, {.q = false, .k = false, .v = false, .out = false}, options);
  const LocalId middle = m.add("attention_sum", first_tokens(m, "latents", seen, all, o.queries), attended);
  const LocalId last = m.layer_norm("feed_forward_norm", middle, kEpsilon);
  return m.add("sum", middle, feed_forward(m, last, 4 * width, width, "gelu"));
}

}  // namespace

Signal aligner(NetworkBuilder& n, const std::string& name, const Features& features, const AlignerOptions& o) {
  return n.module(name, name, [&](ModuleScope& m) {
    LocalId x = features.in(m);
    const std::int64_t items = m.shape(x).rows() / features.tokens;
    if (o.kind == "resampler") {
      require_product("aligner_tokens", {items, o.queries + features.tokens, 4 * m.shape(x).columns()});
      x = resampled(m, x, features.tokens, o);
    }
    require_product("batch, hidden", {m.shape(x).rows(), o.hidden});
    x = m.linear(o.kind == "mlp" ? "up" : "projection", x, o.hidden);
    if (o.kind == "mlp") x = m.linear("down", m.activation("gelu", x, "gelu"), o.hidden);
    m.output(x);
  });
}

}  // namespace tandem
