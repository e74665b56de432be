// What a call of cached_attention is told: sizes, and what a query may see. Read by the primitive and by its body.
#pragma once

#include "core/model/primitive.hpp"

namespace tandem {

struct CachedAttentionSizes {
  CachedAttentionSizes(const Attributes& how, const CallShapes& s)
      : heads(how.integer("heads")),
        tokens(s.in[0].rows()),
        position(how.integer("position")),
        hidden(s.in[0].columns() / 3),
        size(hidden / heads) {}
  std::int64_t keys() const { return position + tokens; }
  // Kernels' own causal masks are for queries that begin where keys do. A single token sees everything.
  bool causal() const { return tokens > 1 && position == 0; }
  bool masked() const { return tokens > 1 && position > 0; }

  std::int64_t heads, tokens, position, hidden, size;
};

}  // namespace tandem
