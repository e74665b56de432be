#include "core/model/families/common/layers.hpp"

#include "core/graph/fused_heads.hpp"

namespace tandem {

LocalId attend(ModuleBuilder& m, const std::string& name, LocalId q, LocalId k, LocalId v, const AttendOptions& o,
               LocalId bias) {
  std::vector<LocalId> in = {q, k, v};
  if (bias != kNone) in.push_back(bias);
  return m.call(name, "qkv_attention", std::move(in),
                {{"heads", o.heads},
                 {"key_heads", o.key_heads > 0 ? o.key_heads : o.heads},
                 {"queries", o.queries},
                 {"keys", o.keys > 0 ? o.keys : o.queries},
                 {"causal", std::int64_t{o.causal}},
                 {"alibi", std::int64_t{o.alibi}},
                 {"window", o.window},
                 {"scale", o.scale},
                 {"softcap", o.softcap},
                 {"bias", std::int64_t{bias != kNone}},
                 {"fused", std::int64_t{has_fused_heads(m.shape(q).type, m.shape(q).columns() / o.heads)}}});
}

LocalId attention_of(ModuleBuilder& m, const std::string& name, LocalId x, LocalId context, std::int64_t inner,
                     const ProjectionBiases& biases, const AttendOptions& options, LocalId bias) {
  const LocalId q = m.linear(name + "_q", x, inner, biases.q);
  const LocalId k = m.linear(name + "_k", context, inner, biases.k);
  const LocalId v = m.linear(name + "_v", context, inner, biases.v);
  const LocalId attended = attend(m, name, q, k, v, options, bias);
  return m.linear(name + "_out", attended, m.shape(x).columns(), biases.out);
}

LocalId rms_norm(ModuleBuilder& m, const std::string& name, LocalId x, double epsilon, bool offset) {
  return m.call(name, "rms_norm", {x}, {{"epsilon", epsilon}, {"offset", std::int64_t{offset}}});
}

LocalId group_norm(ModuleBuilder& m, const std::string& name, LocalId x, std::int64_t groups, double epsilon) {
  return m.call(name, "group_norm", {x}, {{"groups", groups}, {"epsilon", epsilon}});
}

LocalId multiply(ModuleBuilder& m, const std::string& name, LocalId a, LocalId b) {
  return m.call(name, "multiply", {a, b}, {});
}

LocalId conv(ModuleBuilder& m, const std::string& name, LocalId x, const ConvOptions& o) {
  return m.call(name, "conv", {x},
                {{"outputs", o.outputs},
                 {"kernel", o.kernel},
                 {"stride", o.stride},
                 {"padding", o.padding},
                 {"bias", std::int64_t{o.bias}}});
}

LocalId feed_forward(ModuleBuilder& m, LocalId x, std::int64_t width, std::int64_t hidden,
                     const std::string& activation, bool bias) {
  const LocalId up = m.linear("up", x, width, bias);
  return m.linear("down", m.activation("activation", up, activation), hidden, bias);
}

LocalId gated_feed_forward(ModuleBuilder& m, LocalId x, std::int64_t width, std::int64_t hidden,
                           const std::string& activation) {
  const LocalId gate = m.activation("activation", m.linear("gate", x, width, false), activation);
  return m.linear("down", multiply(m, "gated", gate, m.linear("up", x, width, false)), hidden, false);
}

}  // namespace tandem
