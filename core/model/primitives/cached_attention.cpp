// Attention of new tokens of a text to all of it so far. Of queries, keys and values of the new ones, [tokens, 3
// hidden], keys and values go into a cache [2, capacity, hidden], from row `position` on, which has those of the tokens
// before. A token sees itself and those before it. Scores are in no memory; there is no backward.
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/attention_scratch.hpp"
#include "core/model/cached_attention_shape.hpp"
#include "core/model/library_scratch.hpp"

namespace tandem {
namespace {

using Sizes = CachedAttentionSizes;

class CachedAttention final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    CHECK(s.in.size() == 2, "new tokens, and a cache", s.in.size());
    const Sizes a(how, s);
    const Shape &qkv = s.in[0], &cache = s.in[1];
    CHECK(qkv.columns() == 3 * a.heads * a.size && cache.type == qkv.type, qkv.columns(), a.heads);
    CHECK(cache.dims.size() == 3 && cache.dims[0] == 2 && cache.dims[2] == a.hidden, "keys and values", a.hidden);
    CHECK(a.position >= 0 && a.keys() <= cache.dims[1], "the cache is full", a.position, a.tokens, cache.dims[1]);
    s.out = {Shape({a.tokens, a.hidden}, qkv.type)};
  }
  Keeps keeps(const Attributes&, Wanted) const override { return {}; }
  void kernels(const Attributes& how, const CallShapes& s, Direction direction, Wanted,
               std::vector<Kernel>& to) const override {
    CHECK(direction == Direction::Forward, "attention to a cache has no backward");
    const Sizes a(how, s);
    to.push_back(memory_kernel(4 * s.out[0].bytes()));  // new keys and values into the cache
    if (a.masked()) to.push_back(memory_kernel(2 * mask_bytes(a, s)));
    to.push_back(attention_forward(a.heads, a.tokens, a.keys(), a.size, s.in[0].type, a.causal()));
  }
  void scratch(const Attributes& how, const CallShapes& s, Direction direction, Wanted, const RunsOn& where,
               WorkspaceMeter& meter) const override {
    CHECK(direction == Direction::Forward, "attention to a cache has no backward");
    const Sizes a(how, s);
    const std::int64_t row = s.out[0].bytes(), number = size_of(DType::F32);
    if (a.masked()) meter.take(mask_bytes(a, s));
    if (where.gpu) {
      const std::int64_t kept = (a.tokens + 31) / 32 * 32 * a.heads * number;  // the kernel in fp32 has blocks of 32
      return meter.touch_all({row, kept, kept, split_keys(a, s), kNumberBytes, kNumberBytes, kNumberBytes});
    }
    const std::int64_t q = cpu_query_split(a.tokens), k = cpu_key_split(a.keys()), threads = where.threads;
    // In 16 bits scores are rounded, too, and keys and values packed where the processor wants that.
    if (s.in[0].type != DType::F32)
      meter.take(cpu_tile_bytes(threads) + (2 * a.keys() * a.hidden + q * k * threads) * size_of(s.in[0].type));
    meter.touch_all({row, a.tokens * a.heads * number, threads * (q * k + 2 * q + q * a.size) * number});
  }
  Bits updates() const override { return bit(1); }

 private:
  // On a GPU a kernel reads its rows in whole blocks of 16 keys.
  static std::int64_t mask_bytes(const Sizes& a, const CallShapes& s) {
    return a.tokens * ((a.keys() + 15) / 16 * 16) * size_of(s.in[0].type);
  }
  // FlashAttention takes what is in 16 bits, and nothing added to scores.
  static std::int64_t split_keys(const Sizes& a, const CallShapes& s) {
    if (s.in[0].type == DType::F32 || a.masked()) return 0;
    return gpu_split_keys_bytes(a.heads, a.tokens, a.keys(), a.size);
  }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(cached_attention, CachedAttention)
