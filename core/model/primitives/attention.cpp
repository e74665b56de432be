// Scaled dot-product attention of heads over one tensor [tokens, 3 hidden] of queries, keys and values; fused: no
// scores in memory. Keeps a number for each query and head (the log-sum-exp of its scores).
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/attention_scratch.hpp"
#include "core/model/library_scratch.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

struct Heads {
  Heads(const Attributes& how, const CallShapes& s)
      : heads(how.integer("heads")),
        sequence(how.integer("sequence")),
        batch(s.in[0].rows() / sequence),
        size(s.in[0].columns() / 3 / heads),
        causal(how.integer("causal") != 0),
        fused(how.integer("fused", 1) != 0),
        type(s.in[0].type) {
    CHECK(batch * sequence == s.in[0].rows() && 3 * heads * size == s.in[0].columns(), heads, sequence);
  }
  std::int64_t row() const { return batch * sequence * heads * size * size_of(type); }
  std::int64_t scores() const { return batch * heads * sequence * sequence * size_of(type); }
  // Between the scores' shape and that of a head's rows, for each sequence and head.
  Kernel product(std::int64_t columns, std::int64_t inner) const {
    // Rows of heads lie along a head's size, scores along the sequence, as an operand or the result.
    return lying_along(batched_gemm(batch * heads, sequence, columns, inner, type), inner, size);
  }
  std::int64_t heads, sequence, batch, size;
  bool causal, fused;
  DType type;
};

// Unfused: copies are of heads one after another, or back.
std::vector<Kernel> unfused_forward(const Heads& h) {
  const Kernel copy = memory_kernel(2 * h.row());
  std::vector<Kernel> kernels = {copy, copy, h.product(h.sequence, h.size)};
  if (h.causal)
    append(kernels, {memory_kernel(2 * h.sequence * h.sequence),  // the mask, a byte each
                     memory_kernel(2 * h.scores())});
  append(kernels, {memory_kernel(2 * h.scores()), copy, h.product(h.size, h.sequence), copy});
  return kernels;
}

std::vector<Kernel> unfused_backward(const Heads& h) {
  const Kernel copy = memory_kernel(2 * h.row()), scale = copy, narrow = h.product(h.size, h.sequence);
  return {copy,
          narrow,  // the value's gradient
          copy,
          h.product(h.sequence, h.size),
          memory_kernel(3 * h.scores()),  // the softmax's and the scores'
          copy,
          narrow,
          scale,  // the query's
          copy,
          narrow,
          scale};  // the key's
}

void take_unfused_forward(const Heads& h, WorkspaceMeter& meter) {
  const auto scores = meter.take(h.scores());
  meter.touch_all({h.row(), h.row()});  // query and key
  meter.touch(h.sequence * h.sequence);
  meter.drop(scores);
  meter.touch_all({h.row(), h.row()});  // value and product
}

void take_unfused_backward(const Heads& h, WorkspaceMeter& meter) {
  meter.take(h.scores());
  const auto output = meter.take(h.row());
  meter.touch(h.row());  // the value's gradient
  const auto probabilities = meter.take(h.scores());
  meter.touch(h.row());  // value
  meter.drop(probabilities);
  meter.drop(output);
  meter.touch_all({h.row(), h.row()});  // key and the query's gradient; query and the key's
}

class Attention final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    const Shape& qkv = s.in.at(0);
    s.out = {Shape({qkv.rows(), qkv.columns() / 3}, qkv.type)};
    const Heads h(how, s);
    s.saved =
        h.fused
            ? std::vector<NamedShape>{{"logsumexp", Shape({h.batch, h.sequence, h.heads}, DType::F32)}}
            : std::vector<NamedShape>{{"probabilities", Shape({h.batch * h.heads, h.sequence, h.sequence}, h.type)}};
  }
  Keeps keeps(const Attributes& how, Wanted) const override {
    return {.in = bit(0), .out = how.integer("fused", 1) != 0 ? bit(0) : 0};
  }
  void kernels(const Attributes& how, const CallShapes& s, Direction direction, Wanted,
               std::vector<Kernel>& to) const override {
    const Heads h(how, s);
    const bool forward = direction == Direction::Forward;
    if (!h.fused)
      append(to, forward ? unfused_forward(h) : unfused_backward(h));
    else
      to.push_back((forward ? attention_forward : attention_backward)(h.batch * h.heads, h.sequence, h.sequence, h.size,
                                                                      h.type, h.causal));
    if (!forward) to.push_back(memory_kernel(2 * s.in[0].bytes()));  // joins the gradients of query, key and value
  }
  void scratch(const Attributes& how, const CallShapes& s, Direction direction, Wanted, const RunsOn& where,
               WorkspaceMeter& meter) const override {
    const Heads h(how, s);
    const bool forward = direction == Direction::Forward;
    if (h.fused) return forward ? take_forward(h, s, where, meter) : take_backward(h, s, where, meter);
    if (where.gpu) meter.take(kGpuProductBytes);
    if (!where.gpu && h.type != DType::F32) meter.take(cpu_tile_bytes(where.threads) + 2 * h.row() + h.scores());
    if (where.gpu && !forward) meter.take(h.scores());  // the softmax's backward: gradient times result
    forward ? take_unfused_forward(h, meter) : take_unfused_backward(h, meter);
  }
  bool makes_gradients_apart() const override { return true; }
  bool saved_after_output() const override { return true; }
  bool saves_always(const Attributes& how) const override { return how.integer("fused", 1) == 0; }

 private:
  // In 16 bits the CPU's kernel keeps scores in them, too, and packs keys and values where the processor wants that.
  static void take_narrow(const Heads& h, std::int64_t scores, std::int64_t threads, WorkspaceMeter& meter) {
    if (h.type != DType::F32) meter.take(cpu_tile_bytes(threads) + 2 * h.row() + scores * size_of(h.type));
  }
  // The GPU's kernel in fp32 keeps a number for each query of whole blocks of 32.
  static std::int64_t kept_on_gpu(const Heads& h) {
    constexpr std::int64_t kBlock = 32;
    const std::int64_t queries = h.type == DType::F32 ? (h.sequence + kBlock - 1) / kBlock * kBlock : h.sequence;
    return h.batch * h.heads * queries * size_of(DType::F32);
  }
  static void take_forward(const Heads& h, const CallShapes& s, const RunsOn& where, WorkspaceMeter& meter) {
    const std::int64_t q = cpu_query_split(h.sequence), k = cpu_key_split(h.sequence), kept = s.saved[0].shape.bytes();
    // Beside them, the state of random numbers that nothing draws.
    if (where.gpu) {
      const std::int64_t split =
          h.type == DType::F32 ? 0 : gpu_split_keys_bytes(h.batch * h.heads, h.sequence, h.sequence, h.size);
      return meter.touch_all(
          {h.row(), kept_on_gpu(h), kept_on_gpu(h), split, kNumberBytes, kNumberBytes, kNumberBytes});
    }
    take_narrow(h, q * k * where.threads, where.threads, meter);
    meter.touch_all({h.row(), kept, where.threads * (q * k + 2 * q + q * h.size) * size_of(DType::F32)});
  }
  static void take_backward(const Heads& h, const CallShapes& s, const RunsOn& where, WorkspaceMeter& meter) {
    const std::int64_t q = cpu_query_split(h.sequence), k = cpu_key_split(h.sequence);
    const std::int64_t row = h.row(), number = size_of(DType::F32);
    if (where.gpu)
      return meter.touch_all({row, row, row, kept_on_gpu(h), kept_on_gpu(h),
                              gpu_query_gradient_bytes(h.batch * h.heads, s.out[0].elements())});
    take_narrow(h, 2 * q * k * where.threads, where.threads, meter);
    meter.touch_all({row, row, row, where.threads * 2 * q * k * number, q * number});
  }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(attention, Attention)
