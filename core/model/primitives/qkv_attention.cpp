// Attention of queries [batch queries, heads size] over keys and values [batch keys, key_heads size]: grouped heads
// where key_heads is fewer, cross attention where keys are not queries. `causal`: no key after the query; `window`:
// only those less than so many positions away; `alibi`: a score falls with the distance, by head (Press et al. 2022);
// `scale`: of scores, 0: 1/sqrt(size); `softcap`: cap tanh(score / cap), 0: none. With `bias` 1 a fourth input, [heads,
// queries, keys], is added to scores, and has a gradient. `fused` 0: never by one kernel. Keeps a number a query and
// head where the kernel is fused, else the probabilities.
#include <algorithm>

#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/attention_scratch.hpp"
#include "core/model/attention_shape.hpp"
#include "core/model/library_scratch.hpp"

namespace tandem {
namespace {

using Sizes = AttentionSizes;

class QkvAttention final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    const std::size_t inputs = how.integer("bias", 0) != 0 ? 4 : 3;
    CHECK(s.in.size() == inputs, "queries, keys, values, and with `bias` 1 what is added to scores", s.in.size());
    const Sizes a(how, s);
    CHECK(a.batch * a.queries == s.in[0].rows() && a.heads * a.size == s.in[0].columns(), a.heads, a.queries);
    CHECK(a.heads % a.key_heads == 0 && s.in[1] == s.in[2], a.heads, a.key_heads);
    CHECK(s.in[1] == Shape({a.batch * a.keys, a.key_heads * a.size}, s.in[0].type), a.keys, a.key_heads);
    CHECK(a.queries == a.keys || !(a.causal || a.alibi || a.window > 0), "positions of queries are those of keys");
    CHECK(!a.biased || s.in[3] == Shape({a.heads, a.queries, a.keys}, s.in[0].type), "a bias of scores by head");
    CHECK(a.window >= 0 && a.softcap >= 0 && a.scale >= 0, a.window, a.softcap);
    s.out = {s.in[0]};
    if (a.fused())
      s.saved = {{"logsumexp", Shape({a.batch, a.queries, a.heads}, DType::F32)}};
    else
      s.saved = {{"probabilities", Shape({a.batch * a.heads, a.queries, a.keys}, s.in[0].type)}};
  }
  Keeps keeps(const Attributes& how, Wanted) const override {
    const bool fused = how.integer("fused", 1) != 0 && how.integer("bias", 0) == 0 &&
                       (!how.has("softcap") || how.number("softcap") == 0);
    return {.in = bit(0) | bit(1) | bit(2), .out = fused ? bit(0) : 0};
  }
  void kernels(const Attributes& how, const CallShapes& s, Direction direction, Wanted wanted,
               std::vector<Kernel>& to) const override {
    const Sizes a(how, s);
    const bool forward = direction == Direction::Forward;
    if (a.group() > 1 && !a.fused()) to.insert(to.end(), 2, memory_kernel(2 * rows(a, s, a.keys)));
    if (a.masked()) to.insert(to.end(), 2, memory_kernel(2 * a.mask() * size_of(s.in[0].type)));
    if (!a.fused()) {
      forward ? composed_forward(a, s, to) : composed_backward(a, s, wanted, to);
    } else {
      const auto kernel = forward ? attention_forward : attention_backward;
      to.push_back(kernel(a.batch * a.heads, a.queries, a.keys, a.size, s.in[0].type, a.causal && !a.masked()));
    }
    if (!forward) to.push_back(memory_kernel(2 * (s.in[0].bytes() + 2 * rows(a, s, a.keys))));
  }
  void scratch(const Attributes& how, const CallShapes& s, Direction direction, Wanted wanted, const RunsOn& where,
               WorkspaceMeter& meter) const override {
    const Sizes a(how, s);
    const std::int64_t type = size_of(s.in[0].type), seen = a.queries * a.keys, number = size_of(DType::F32);
    // The CPU's fused kernel and FlashAttention read grouped heads as they are.
    const bool repeats = a.group() > 1 && (!a.fused() || (where.gpu && (s.in[0].type == DType::F32 || a.masked())));
    const std::int64_t keys = rows(a, s, a.keys), repeated = repeats ? keys : 0;
    meter.take(kNumberBytes), meter.take(repeated), meter.take(repeated);
    // What is hidden, distances, and both as they are added, which a kernel wants in whole blocks of keys.
    if (a.masked()) {
      const std::int64_t blocks = a.mask() / a.keys * (a.keys + 15);
      for (const std::int64_t bytes : {seen, seen, a.alibi ? 2 * seen * number : 0, a.alibi ? a.mask() * number : 0,
                                       a.alibi ? a.mask() * number : 0, blocks * type})
        meter.take(bytes);
    }
    if (!a.fused()) return composed_scratch(a, s, direction, wanted, where.gpu, meter);
    const std::int64_t row = s.out[0].bytes(), kept = s.saved[0].shape.bytes() + a.batch * a.heads * 31 * number;
    if (where.gpu && direction == Direction::Forward)
      return meter.touch_all({row, kept, kept, split_keys(a, s), kNumberBytes, kNumberBytes, kNumberBytes});
    if (where.gpu)
      return meter.touch_all(
          {row, keys, keys, keys, keys, kept, kept, gpu_query_gradient_bytes(a.batch * a.heads, s.out[0].elements())});
    const std::int64_t q = cpu_query_split(a.queries), k = cpu_key_split(a.keys), threads = where.threads;
    // In 16 bits, a thread's scores and their gradients are rounded, too.
    const std::int64_t rounded = s.in[0].type == DType::F32 ? 0 : threads * q * k * type;
    // Of this thread: others have memory of their own.
    const std::int64_t products = cpu_product_bytes(q, k, a.size, s.in[0].type);
    if (direction == Direction::Forward)
      return meter.touch_all({row, kept, threads * (q * k + 2 * q + q * a.size) * number, rounded, products});
    const std::int64_t made = s.in[1].bytes();
    meter.touch_all({row, made, made, threads * 2 * q * k * number, q * number, 2 * rounded, products});
  }
  bool makes_gradients_apart() const override { return true; }
  bool saved_after_output() const override { return true; }

 private:
  // Of all heads.
  static std::int64_t rows(const Sizes& a, const CallShapes& s, std::int64_t of_each) {
    return a.batch * a.heads * of_each * a.size * size_of(s.in[0].type);
  }
  // FlashAttention takes what is in 16 bits, and nothing added to scores.
  static std::int64_t split_keys(const Sizes& a, const CallShapes& s) {
    if (s.in[0].type == DType::F32 || a.masked()) return 0;
    return gpu_split_keys_bytes(a.batch * a.heads, a.queries, a.keys, a.size);
  }
  static Kernel product(const Sizes& a, const CallShapes& s, std::int64_t m, std::int64_t n, std::int64_t k) {
    // Rows of heads lie along a head's size, scores along the keys, as an operand or the result.
    const std::int64_t scores = k == a.size ? a.size : a.keys;
    return lying_along(batched_gemm(a.batch * a.heads, m, n, k, s.in[0].type), scores, a.size);
  }
  static void composed_forward(const Sizes& a, const CallShapes& s, std::vector<Kernel>& to) {
    const std::int64_t scores = a.scores() * size_of(s.in[0].type);
    to.insert(to.end(), 2, memory_kernel(2 * rows(a, s, a.keys)));
    to.push_back(memory_kernel(2 * s.in[0].bytes()));
    to.push_back(product(a, s, a.queries, a.keys, a.size));
    const int over_scores = 1 + (a.softcap > 0 ? 3 : 0) + (a.biased ? 1 : 0) + (a.masked() ? 1 : 0) + 1;
    to.insert(to.end(), static_cast<std::size_t>(over_scores), memory_kernel(2 * scores));
    to.push_back(product(a, s, a.queries, a.size, a.keys));
    to.push_back(memory_kernel(2 * s.in[0].bytes()));
  }
  static void composed_backward(const Sizes& a, const CallShapes& s, Wanted wanted, std::vector<Kernel>& to) {
    const std::int64_t scores = a.scores() * size_of(s.in[0].type);
    to.push_back(memory_kernel(2 * s.in[0].bytes()));
    if ((wanted.in & bit(2)) != 0) to.push_back(product(a, s, a.keys, a.size, a.queries));
    to.push_back(memory_kernel(2 * rows(a, s, a.keys)));
    to.push_back(product(a, s, a.queries, a.keys, a.size));
    to.push_back(memory_kernel(3 * scores));  // softmax
    if (a.biased && (wanted.in & bit(3)) != 0) to.push_back(row_kernel(a.batch, scores + s.in[3].bytes()));
    if (a.softcap > 0) {
      to.push_back(product(a, s, a.queries, a.keys, a.size));  // scores again
      to.insert(to.end(), 6, memory_kernel(2 * scores));
    }
    to.push_back(memory_kernel(2 * scores));  // scale
    if ((wanted.in & bit(0)) != 0) to.push_back(product(a, s, a.queries, a.size, a.keys));
    if ((wanted.in & bit(1)) != 0) to.push_back(product(a, s, a.size, a.keys, a.queries));
  }
  static void composed_scratch(const Sizes& a, const CallShapes& s, Direction direction, Wanted wanted, bool gpu,
                               WorkspaceMeter& meter) {
    const std::int64_t scores = s.saved[0].shape.bytes(), queries = s.out[0].bytes(), keys = rows(a, s, a.keys);
    const std::int64_t products = cpu_product_bytes(a.batch * a.heads * a.queries, a.keys, a.size, s.in[0].type) +
                                  (s.in[0].type == DType::F32 ? 0 : 2 * keys);
    if (direction == Direction::Forward) {
      if (!wanted.saves) meter.take(scores);
      return meter.touch_all({scores, queries, keys, queries, keys, products});
    }
    const std::int64_t bias = a.biased ? s.in[3].bytes() : 0;
    // On a GPU the softmax's backward makes gradient times result first.
    meter.touch_all({scores, scores, gpu ? scores : 0, queries, queries, keys, keys, bias, products});
  }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(qkv_attention, QkvAttention)
