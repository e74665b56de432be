// What a call of qkv_attention is told: sizes, and what a query may see. Read by the primitive and by its body.
#pragma once

#include "core/model/primitive.hpp"

namespace tandem {

struct AttentionSizes {
  AttentionSizes(const Attributes& how, const CallShapes& s)
      : heads(how.integer("heads")),
        key_heads(how.integer("key_heads", heads)),
        queries(how.integer("queries")),
        keys(how.integer("keys", queries)),
        batch(s.in[0].rows() / queries),
        size(s.in[0].columns() / heads),
        window(how.integer("window", 0)),
        causal(how.integer("causal", 0) != 0),
        alibi(how.integer("alibi", 0) != 0),
        biased(how.integer("bias", 0) != 0),
        scale(how.has("scale") ? how.number("scale") : 0),
        softcap(how.has("softcap") ? how.number("softcap") : 0),
        may_fuse(how.integer("fused", 1) != 0) {}
  // One kernel without scores in memory: it knows no cap, and has no gradient of what is added to scores.
  bool fused() const { return may_fuse && softcap == 0 && !biased; }
  // Something is added to scores that follows from positions.
  bool masked() const { return window > 0 || alibi || (causal && !fused()); }
  std::int64_t group() const { return heads / key_heads; }
  std::int64_t scores() const { return batch * heads * queries * keys; }
  std::int64_t mask() const { return (alibi ? heads : 1) * queries * keys; }

  std::int64_t heads, key_heads, queries, keys, batch, size, window;
  bool causal, alibi, biased;
  double scale, softcap;
  bool may_fuse;
};

}  // namespace tandem
