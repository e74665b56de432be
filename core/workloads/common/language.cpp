#include "core/workloads/common/language.hpp"

#include "core/graph/kernels.hpp"

namespace tandem {

std::pair<Signal, Signal> token_batch(NetworkBuilder& n, const TransformerSizes& s) {
  const Shape shape({s.batch, s.sequence}, DType::I64);
  Signal inputs = n.batch("inputs", shape), targets = n.batch("targets", shape);
  return {std::move(inputs), std::move(targets)};
}

Work token_load(const std::string& what, const TransformerSizes& s) {
  return {what + ".load",
          DType::I64,
          {s.batch, s.sequence, s.vocabulary},
          {memory_kernel(4 * s.tokens() * size_of(DType::I64))},
          nullptr};
}

LocalId language_loss(ModuleBuilder& m, const TransformerSizes& s, LocalId x, LocalId targets, LocalId shared,
                      bool bias) {
  if (s.loss_tiles > 1) {
    std::vector<LocalId> in = {x, targets};
    if (shared != kNone) in.push_back(shared);
    return m.call("output", "tiled_loss", std::move(in),
                  {{"outputs", s.vocabulary}, {"tiles", s.loss_tiles}, {"bias", std::int64_t{bias}}});
  }
  const LocalId logits =
      shared == kNone ? m.linear("output", x, s.vocabulary, bias) : m.linear_by("output", x, shared, bias);
  return m.cross_entropy("loss", logits, targets);
}

}  // namespace tandem
