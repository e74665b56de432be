// One round of attention around a ring (Liu, Zaharia, Abbeel, 2023, "Ring Attention with Blockwise Transformers"): of a
// rank's queries [batch queries, heads size] over the keys and values of one rank, side by side in [batch keys, 2
// key_heads size]. From the second round on a third input is what the rounds before made, in fp32, with which this
// one's is merged by running maximum and sum; its gradient is the result's, as it is, because each round's backward
// takes the last round's log-sum-exp. `last`: the result is in the module's precision, and a number a query and head is
// kept. Fused alone. Attributes beside: heads, key_heads, queries, keys, `causal` (of each query, keys up to its
// place).
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/attention_scratch.hpp"
#include "core/model/attention_shape.hpp"
#include "core/model/library_scratch.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

using Sizes = AttentionSizes;

bool is_last(const Attributes& how) { return how.integer("last") != 0; }

class RingAttention final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    CHECK(s.in.size() == 2 || s.in.size() == 3, "queries, keys and values, and what there is so far", s.in.size());
    const Sizes a(how, s);
    const Shape &q = s.in[0], so_far = Shape({q.rows(), q.columns()}, DType::F32);
    CHECK(a.batch * a.queries == q.rows() && a.heads * a.size == q.columns(), a.heads, a.queries);
    CHECK(a.heads % a.key_heads == 0 && a.fused() && !a.masked(), a.heads, a.key_heads);
    CHECK(s.in[1] == Shape({a.batch * a.keys, 2 * a.key_heads * a.size}, q.type), a.keys, a.key_heads);
    CHECK(s.in.size() == 2 || s.in[2] == so_far, "what the rounds before made");
    s.out = {is_last(how) ? q : so_far};
    if (is_last(how)) s.saved = {{"logsumexp", Shape({a.batch, a.queries, a.heads}, DType::F32)}};
  }
  Keeps keeps(const Attributes& how, Wanted) const override {
    return {.in = bit(0) | bit(1), .out = is_last(how) ? bit(0) : 0};
  }
  void kernels(const Attributes& how, const CallShapes& s, Direction direction, Wanted,
               std::vector<Kernel>& to) const override {
    const Sizes a(how, s);
    const bool forward = direction == Direction::Forward;
    const auto kernel = forward ? attention_forward : attention_backward;
    to.push_back(kernel(a.batch * a.heads, a.queries, a.keys, a.size, s.in[0].type, a.causal));
    if (!forward) return to.push_back(memory_kernel(2 * (s.in[0].bytes() + s.in[1].bytes())));
    to.push_back(memory_kernel(s.in[0].bytes() + (s.in.size() > 2 ? s.in[2].bytes() : 0) + s.out[0].bytes()));
  }
  // What a GPU's kernel takes, the round's own result and statistics, and the running ones.
  void scratch(const Attributes& how, const CallShapes& s, Direction direction, Wanted, const RunsOn&,
               WorkspaceMeter& meter) const override {
    const Sizes a(how, s);
    const std::int64_t row = s.in[0].bytes(), keys = s.in[1].bytes() * a.group();
    const std::int64_t kept = a.batch * a.heads * a.queries * size_of(DType::F32);
    if (direction == Direction::Backward)
      return meter.touch_all(
          {row, keys, keys, kept, kept, gpu_query_gradient_bytes(a.batch * a.heads, s.in[0].elements())});
    const std::int64_t split =
        s.in[0].type == DType::F32 ? 0 : gpu_split_keys_bytes(a.batch * a.heads, a.queries, a.keys, a.size);
    meter.touch_all({row, kept, kept, kept, kept, split, kNumberBytes, kNumberBytes, kNumberBytes});
  }
  Bits passes_gradient() const override { return bit(2); }
  bool makes_gradients_apart() const override { return true; }
  bool saved_after_output() const override { return true; }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(ring_attention, RingAttention)
