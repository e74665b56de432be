// One round of attention around a ring (Liu, Zaharia, Abbeel, 2023, "Ring Attention with Blockwise Transformers"): of a
// rank's queries [batch queries, heads size] over the keys and values of one rank, side by side in [batch keys, 2
// key_heads size]. From the second round on a third input is what the rounds before made, in fp32: [batch queries,
// heads size and heads], rows and behind them the logarithm of each head's sum of exponentials, by which this round's
// are merged with them. `last`: the result is in the module's precision, and the logarithms are saved.
//
// Backward, each round reads the last one's result, its gradient as it lies there, and its logarithms, as its own
// (ring_round.hpp): products with them are this round's part of the gradients. Fused alone. Attributes beside: heads,
// key_heads, queries, keys, `causal` (of each query, keys up to its place), and of which keys are in hand: ranks, part,
// round, and `ordered` (a query sees none of tokens that come after it).
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/attention_scratch.hpp"
#include "core/model/attention_shape.hpp"
#include "core/model/library_scratch.hpp"
#include "core/model/primitive.hpp"
#include "core/model/ring_round.hpp"

namespace tandem {
namespace {

using Sizes = AttentionSizes;

bool is_last(const Attributes& how) { return how.integer("last") != 0; }

class RingAttention final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    CHECK(s.in.size() == 2 || s.in.size() == 3, "queries, keys and values, and what there is so far", s.in.size());
    const Sizes a(how, s);
    const Shape &q = s.in[0], so_far = Shape({q.rows(), q.columns() + a.heads}, DType::F32);
    CHECK(a.batch * a.queries == q.rows() && a.heads * a.size == q.columns(), a.heads, a.queries);
    CHECK(a.heads % a.key_heads == 0 && a.fused() && !a.masked(), a.heads, a.key_heads);
    CHECK(s.in[1] == Shape({a.batch * a.keys, 2 * a.key_heads * a.size}, q.type), a.keys, a.key_heads);
    CHECK(s.in.size() == 2 || s.in[2] == so_far, "what the rounds before made");
    s.out = {is_last(how) ? q : so_far};
    s.saved = {{"logsumexp", Shape({a.batch, a.queries, a.heads}, DType::F32)}};
  }
  Keeps keeps(const Attributes&, Wanted) const override { return {.in = bit(0) | bit(1), .out = bit(0)}; }
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
  void scratch(const Attributes& how, const CallShapes& s, Direction direction, Wanted, const RunsOn& where,
               WorkspaceMeter& meter) const override {
    const Sizes a(how, s);
    if (!where.gpu)
      return direction == Direction::Forward ? on_cpu(a, s, where, meter) : back_on_cpu(how, s, where, meter);
    direction == Direction::Forward ? on_gpu(a, s, meter) : back_on_gpu(a, s, meter);
  }
  Bits passes_gradient() const override { return bit(2); }
  bool makes_gradients_apart() const override { return true; }
  bool saved_after_output() const override { return true; }

 private:
  // As of qkv_attention: the kernel's own, of this thread and of others'.
  struct OnCpu {
    OnCpu(const Sizes& a, const CallShapes& s, const RunsOn& where)
        : q(cpu_query_split(a.queries)),
          k(cpu_key_split(a.keys)),
          threads(where.threads),
          rounded(s.in[0].type == DType::F32 ? 0 : threads * q * k * size_of(s.in[0].type)),
          products(cpu_product_bytes(q, k, a.size, s.in[0].type)),
          kept(a.batch * a.heads * a.queries * kNumber) {}
    std::int64_t q, k, threads, rounded, products, kept;
  };
  static constexpr std::int64_t kNumber = size_of(DType::F32);

  static void on_cpu(const Sizes& a, const CallShapes& s, const RunsOn& where, WorkspaceMeter& meter) {
    const OnCpu c(a, s, where);
    const std::int64_t row = s.in[0].bytes(), wide = s.in[0].elements() * kNumber;
    const std::int64_t result = meter.take(row), kept = meter.take(c.kept);
    meter.touch_all({c.threads * (c.q * c.k + 2 * c.q + c.q * a.size) * kNumber, c.rounded, c.products});
    // Logarithms of both together, both weights, and what they are made of; what is merged, and 16 bits widened.
    if (s.in.size() > 2)
      meter.touch_all({kNumberBytes, c.kept, c.kept, c.kept, c.kept, s.out[0].type == s.in[2].type ? 0 : wide,
                       s.in[0].type == DType::F32 ? 0 : wide});
    meter.drop(kept), meter.drop(result);
  }
  // Keys and values that heads share, each as often as it is read: FlashAttention, of 16 bits, reads them as they are.
  static std::int64_t repeated(const Sizes& a, const CallShapes& s) {
    return s.in[0].type == DType::F32 && a.group() > 1 ? s.in[1].bytes() * a.group() : 0;
  }
  // Its logarithms, in whole blocks of queries.
  static std::int64_t kept(const Sizes& a) { return a.batch * a.heads * (a.queries + 31) * kNumber; }
  static void on_gpu(const Sizes& a, const CallShapes& s, WorkspaceMeter& meter) {
    const bool wide = s.in.size() > 2 && s.out[0].type != DType::F32;
    const std::int64_t split =
        s.in[0].type == DType::F32 ? 0 : gpu_split_keys_bytes(a.batch * a.heads, a.queries, a.keys, a.size);
    meter.touch_all({wide ? s.in[0].elements() * kNumber : 0, repeated(a, s), s.in[0].bytes(), kept(a), kept(a),
                     kept(a), kept(a), split, kNumberBytes, kNumberBytes, kNumberBytes});
  }
  // Where the first query sees nothing, what the others read does not lie in a row, and the kernel copies it.
  static void back_on_gpu(const Sizes& a, const CallShapes& s, WorkspaceMeter& meter) {
    const std::int64_t row = s.in[0].bytes(), keys = s.in[1].bytes() * a.group();
    meter.touch_all({repeated(a, s), row, row, row, keys, keys, kept(a), kept(a), kept(a),
                     gpu_query_gradient_bytes(a.batch * a.heads, s.in[0].elements())});
  }
  // Where the first query sees nothing, the gradient of the others does not lie in a row, and the kernel copies it.
  static void back_on_cpu(const Attributes& how, const CallShapes& s, const RunsOn& where, WorkspaceMeter& meter) {
    const OnCpu c(Sizes(how, s), s, where);
    const std::int64_t row = s.in[0].bytes(), made = s.in[1].bytes() / 2;
    const std::int64_t copied = ring_sees(how) == RingSees::BeforeOwn ? row : 0;
    meter.touch_all(
        {row, made, made, copied, c.threads * 2 * c.q * c.k * kNumber, c.q * kNumber, 2 * c.rounded, c.products});
  }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(ring_attention, RingAttention)
