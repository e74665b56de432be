// Scaled dot-product attention of heads over one tensor [tokens, 3 hidden] of queries, keys and values; fused: no
// scores in memory. Keeps a number for each query and head (the log-sum-exp of its scores).
#include <algorithm>

#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

// How LibTorch's fused CPU attention splits queries (by their number) and keys.
std::int64_t query_split(std::int64_t queries) {
  const std::int64_t split = queries >= 768 ? 256 : queries >= 192 ? 64 : 32;
  return std::min(split, queries);
}
std::int64_t key_split(std::int64_t keys) { return std::min<std::int64_t>(512, keys); }

struct Heads {
  Heads(const Attributes& how, const CallShapes& s)
      : heads(how.integer("heads")),
        sequence(how.integer("sequence")),
        batch(s.in[0].rows() / sequence),
        size(s.in[0].columns() / 3 / heads),
        causal(how.integer("causal") != 0) {
    CHECK(batch * sequence == s.in[0].rows() && 3 * heads * size == s.in[0].columns(), heads, sequence);
  }
  std::int64_t heads, sequence, batch, size;
  bool causal;
};

class Attention final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    const Shape& qkv = s.in.at(0);
    s.out = {Shape({qkv.rows(), qkv.columns() / 3}, qkv.type)};
    const Heads h(how, s);
    s.saved = {{"logsumexp", Shape({h.batch, h.sequence, h.heads}, DType::F32)}};
  }
  Keeps keeps(const Attributes&, Wanted) const override { return {.in = bit(0), .out = bit(0)}; }
  void kernels(const Attributes& how, const CallShapes& s, Direction direction, Wanted,
               std::vector<Kernel>& to) const override {
    const Heads h(how, s);
    const DType type = s.in[0].type;
    if (direction == Direction::Forward)
      return to.push_back(attention_forward(h.batch * h.heads, h.sequence, h.sequence, h.size, type, h.causal));
    to.push_back(attention_backward(h.batch * h.heads, h.sequence, h.sequence, h.size, type, h.causal));
    to.push_back(memory_kernel(2 * s.in[0].bytes()));  // joins the gradients of query, key and value
  }
  void scratch(const Attributes& how, const CallShapes& s, Direction direction, Wanted, const RunsOn& where,
               WorkspaceMeter& meter) const override {
    const Heads h(how, s);
    const std::int64_t q = query_split(h.sequence), k = key_split(h.sequence), row = s.out[0].bytes();
    const std::int64_t kept = s.saved[0].shape.bytes(), number = size_of(DType::F32);
    if (direction == Direction::Forward) {
      if (where.gpu) return meter.touch_all({row, kept, kept});
      return meter.touch_all({row, kept, where.threads * (q * k + 2 * q + q * h.size) * number});
    }
    if (where.gpu) return meter.touch_all({row, row, row, kept, kept, gpu_sums(h, s)});
    meter.touch_all({row, row, row, where.threads * 2 * q * k * number, q * number});
  }
  bool makes_gradients_apart() const override { return true; }
  bool saved_after_output() const override { return true; }

 private:
  // FlashAttention's backward, where results must not depend on the order of sums, adds up the query's gradient in so
  // many parts that blocks of all sequences and heads fill the GPU's multiprocessors.
  static std::int64_t gpu_sums(const Heads& h, const CallShapes& s) {
    constexpr std::int64_t kMiB = 1 << 20;
    const std::int64_t blocks = h.batch * h.heads, parts = (kMostGpuProcessors + blocks - 1) / blocks;
    const std::int64_t part = s.out[0].elements() * size_of(DType::F32);
    return std::max(64 * kMiB + 2 * part, 32 * kMiB + parts * part);
  }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(attention, Attention)
