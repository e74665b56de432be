// Products of matrices, and attention, whose kernel the runtime chooses by the processor.
#include "core/graph/kernels.hpp"
#include "core/model/attention_scratch.hpp"
#include "core/model/imported/shapes.hpp"
#include "core/model/library_scratch.hpp"

namespace tandem {
namespace {

void check_pair(const TensorType& a, const TensorType& b, std::int64_t rank, std::size_t at) {
  require(a.rank() == rank && b.rank() == rank && a.element == b.element && is_float(a.element), at,
          "is no matrix that meets the other's type", "two of one type");
  require(a.dims.back() == b.dims[static_cast<std::size_t>(rank) - 2], at, "has another inner size than the other",
          "[m, k] and [k, n]");
  require(rank == 2 || a.dims[0] == b.dims[0], at, "is another number of matrices than the other", "as many");
}
TensorType product_of(const TensorType& a, const TensorType& b) {
  TensorType out = a;
  out.dims.back() = b.dims.back();
  return out;
}
void product(const CallView& c, TensorTypes& out) {
  check_pair(c.tensor(0), c.tensor(1), 2, 1);
  out.push_back(product_of(c.tensor(0), c.tensor(1)));
}
void products(const CallView& c, TensorTypes& out) {
  check_pair(c.tensor(0), c.tensor(1), 3, 1);
  out.push_back(product_of(c.tensor(0), c.tensor(1)));
}
void added_product(const CallView& c, std::int64_t rank, TensorTypes& out) {
  check_pair(c.tensor(1), c.tensor(2), rank, 2);
  out.push_back(product_of(c.tensor(1), c.tensor(2)));
  require(broadcast(c.tensor(0).dims, out[0].dims, 0) == out[0].dims && c.tensor(0).element == out[0].element, 0,
          "cannot be added to the product", "its type, and a shape that broadcasts to it");
}
void added(const CallView& c, TensorTypes& out) { added_product(c, 2, out); }
void added_in_batches(const CallView& c, TensorTypes& out) { added_product(c, 3, out); }

DType type_of(const TensorType& t) { return stored_as(t.element); }

template <std::size_t kFirst>
void product_kernels(const CallView& c, const TensorTypes& out, std::vector<Kernel>& to) {
  const Sizes& a = c.tensor(kFirst).dims;
  const std::int64_t m = a[a.size() - 2], k = a.back(), n = out[0].dims.back();
  const DType type = type_of(out[0]);
  if (m > 0 && n > 0 && k > 0)
    to.push_back(a.size() == 2 ? lying_along(gemm(m, n, k, type), k, k) : batched_gemm(a[0], m, n, k, type));
}
template <std::size_t kFirst>
std::int64_t product_scratch(const CallView& c, const TensorTypes& out, std::int64_t threads, bool gpu) {
  const Sizes& a = c.tensor(kFirst).dims;
  const std::int64_t k = a.back(), m = a[a.size() - 2];
  // Operands that do not lie as libraries want them are copied first.
  const std::int64_t copies = read_bytes(c) + bytes_of(out);
  return copies + (gpu ? kGpuProductBytes : cpu_product_bytes(m, out[0].dims.back(), k, type_of(out[0]), threads));
}

// Query [batch, heads, queries, size], key and value [batch, heads or a part of them, keys, size].
struct Heads {
  Heads(const CallView& c, std::size_t first) {
    const TensorType &q = c.tensor(first), &k = c.tensor(first + 1), &v = c.tensor(first + 2);
    require(q.rank() == 4 && k.rank() == 4 && v == k && q.element == k.element && is_float(q.element) &&
                q.numbers() > 0 && k.numbers() > 0 && q.dims[0] == k.dims[0] && q.dims[1] % k.dims[1] == 0 &&
                q.dims[3] == k.dims[3],
            first, "is not queries beside keys and values",
            "[batch, heads, tokens, size], of one size, and keys' heads that divide the queries'");
    std::int64_t scores = 0;
    require(!__builtin_mul_overflow(q.dims[2], k.dims[2], &scores) && scores <= kMostNumbers, first,
            "are too many beside the keys", "2^44 scores of a head");
    all = q.dims[0] * q.dims[1], queries = q.dims[2], keys = k.dims[2], size = q.dims[3], type = stored_as(q.element);
  }
  std::int64_t all, queries, keys, size;
  DType type;
};
// Of what no result depends on: dropout is 0 (it is a call of its own).
void check_options(const CallView& c, std::size_t dropout, std::size_t mask) {
  require(c.number(dropout) == 0, dropout, "is a rate of dropout", "0: dropout is a call of its own");
  if (!c.has(mask)) return;
  const TensorType& q = c.tensor(mask == 5 ? 0 : 1);
  const TensorType& k = c.tensor(mask == 5 ? 1 : 2);
  const TensorType& m = c.tensor(mask);
  const Sizes scores = {q.dims[0], q.dims[1], q.dims[2], k.dims[2]};
  require((m.rank() == 2 || m.rank() == 4) && broadcast(m.dims, scores, mask) == scores &&
              (m.element == Element::Bool || m.element == q.element),
          mask, "is no mask of these scores", "bool or the queries' type, and a shape that broadcasts to them");
}
void attention(const CallView& c, TensorTypes& out) {
  const Heads h(c, 0);
  check_options(c, 3, 5);
  const TensorType& q = c.tensor(0);
  out = {q, {Element::F32, {q.dims[0], q.dims[1], q.dims[2]}}};
}
void attention_backward_of(const CallView& c, TensorTypes& out) {
  const Heads h(c, 1);
  check_options(c, 6, 8);
  const TensorType& q = c.tensor(1);
  require(c.tensor(0) == q, 0, "is not the output's gradient", "a tensor of its type and shape");
  require(c.tensor(4) == q, 4, "is not the output", "what forward made");
  require(c.tensor(5) == TensorType{Element::F32, {q.dims[0], q.dims[1], q.dims[2]}}, 5, "is not forward's statistics",
          "what forward made");
  out = {q, c.tensor(2), c.tensor(3)};
}
void attention_kernels(const CallView& c, const TensorTypes&, std::vector<Kernel>& to) {
  const Heads h(c, 0);
  to.push_back(attention_forward(h.all, h.queries, h.keys, h.size, h.type, c.flag(4)));
}
void attention_backward_kernels(const CallView& c, const TensorTypes&, std::vector<Kernel>& to) {
  const Heads h(c, 1);
  to.push_back(attention_backward(h.all, h.queries, h.keys, h.size, h.type, c.flag(7)));
}
// The CPU's kernel keeps scores and sums of a block for each thread; all kernels may copy operands and widen the mask.
std::int64_t attention_bytes(const Heads& h, const CallView& c, const TensorTypes& out, std::int64_t threads, bool gpu,
                             bool backward) {
  const std::int64_t copies = read_bytes(c) + bytes_of(out) + h.all * h.queries * 4 + h.queries * h.keys * 4;
  if (gpu)
    return copies + (backward ? gpu_query_gradient_bytes(h.all, h.all * h.queries * h.size)
                              : gpu_split_keys_bytes(h.all, h.queries, h.keys, h.size));
  const std::int64_t q = cpu_query_split(h.queries), k = cpu_key_split(h.keys);
  constexpr std::int64_t kBlocks = 4;
  return copies + threads * kBlocks * 4 * (q * k + q * (h.size + 2) + k * h.size + 64);
}
std::int64_t attention_scratch(const CallView& c, const TensorTypes& out, std::int64_t threads, bool gpu) {
  return attention_bytes(Heads(c, 0), c, out, threads, gpu, false);
}
std::int64_t attention_backward_scratch(const CallView& c, const TensorTypes& out, std::int64_t threads, bool gpu) {
  return attention_bytes(Heads(c, 1), c, out, threads, gpu, true);
}

}  // namespace

const OperatorTable& product_operators() {
  static const OperatorTable kTable = {
      {"mm", "TT", product, product_kernels<0>, product_scratch<0>},
      {"bmm", "TT", products, product_kernels<0>, product_scratch<0>},
      {"addmm", "TTTnn", added, product_kernels<1>, product_scratch<1>},
      {"baddbmm", "TTTnn", added_in_batches, product_kernels<1>, product_scratch<1>},
      {"attention", "TTTnbtx", attention, attention_kernels, attention_scratch},
      {"attention_backward", "TTTTTTnbtx", attention_backward_of, attention_backward_kernels,
       attention_backward_scratch},
  };
  return kTable;
}

}  // namespace tandem
