#include "core/model/families/common/language.hpp"

namespace tandem {

std::pair<Signal, Signal> token_batch(NetworkBuilder& n, const TransformerSizes& s, const std::string& what) {
  const Shape shape({s.batch, s.sequence}, DType::I64);
  Signal inputs = n.batch("inputs", shape, s.vocabulary), targets = n.batch("targets", shape, s.vocabulary);
  n.load(what, DType::I64, {s.batch, s.sequence, s.vocabulary}, 4 * shape.bytes());
  return {std::move(inputs), std::move(targets)};
}

LocalId language_logits(ModuleBuilder& m, const LanguageOutput& o, LocalId x, LocalId shared, bool bias) {
  const LocalId logits = shared == kNone ? m.linear("output", x, o.vocabulary, bias, o.padding)
                                         : m.linear_by("output", x, shared, bias, o.padding);
  return o.softcap > 0 ? m.call("capped", "softcap", {logits}, {{"cap", o.softcap}}) : logits;
}

LocalId language_loss(ModuleBuilder& m, const LanguageOutput& o, LocalId x, LocalId targets, LocalId shared,
                      bool bias) {
  if (o.tiles > 1) {
    std::vector<LocalId> in = {x, targets};
    if (shared != kNone) in.push_back(shared);
    return m.call("output", "tiled_loss", std::move(in),
                  {{"outputs", o.vocabulary + o.padding},
                   {"tiles", o.tiles},
                   {"bias", std::int64_t{bias}},
                   {"padding", o.padding}});
  }
  return m.cross_entropy("loss", language_logits(m, o, x, shared, bias), targets, o.padding);
}

}  // namespace tandem
