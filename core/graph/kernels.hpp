// Kernel entries of works, with flops as torch.utils.flop_counter counts them and bytes as each operand once.
// Must not know families.
#pragma once

#include <initializer_list>
#include <vector>

#include "core/base/errors.hpp"
#include "core/graph/graph.hpp"

namespace tandem {

// The product of sizes. Throws ConfigError where it could not be counted, nor sums of many such.
inline std::int64_t counted(std::initializer_list<std::int64_t> factors) {
  constexpr std::int64_t kMost = std::int64_t{1} << 58;
  std::int64_t product = 1;
  for (const std::int64_t factor : factors)
    if (__builtin_mul_overflow(product, factor, &product) || product > kMost)
      throw ConfigError(
          "workload.family: one op would take more than 2^58 operations or bytes; allowed: smaller sizes");
  return product;
}

// From one rank to another.
inline bool is_transfer(const Work& work) { return work.body == "send" || work.body == "receive"; }

inline void append(std::vector<Kernel>& to, const std::vector<Kernel>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

// [m, k] times [k, n].
inline Kernel gemm(std::int64_t m, std::int64_t n, std::int64_t k, DType type) {
  Kernel kernel;
  kernel.kind = KernelKind::Gemm;
  kernel.m = m, kernel.n = n, kernel.k = k;
  kernel.flops = counted({2, m, n, k});
  kernel.bytes = counted({m * k + k * n + m * n, size_of(type)});
  return kernel;
}

// The largest power of two, up to kAligned, that divides all of the sizes.
inline std::int16_t alignment_of(std::initializer_list<std::int64_t> sizes) {
  std::int16_t alignment = kAligned;
  for (const std::int64_t size : sizes)
    while (size % alignment != 0) alignment /= 2;
  return alignment;
}

// Of a product whose first and second operand lie along those sizes, and whose result lies along its columns.
inline Kernel lying_along(Kernel product, std::int64_t first, std::int64_t second) {
  product.operand_alignment = alignment_of({first, second});
  product.result_alignment = alignment_of({product.n});
  return product;
}

// Of y = x weight^T, x [rows, inputs], weight [outputs, inputs]: y, and the gradients of x and of the weight.
inline Kernel linear_product(std::int64_t rows, std::int64_t outputs, std::int64_t inputs, DType type) {
  return lying_along(gemm(rows, outputs, inputs, type), inputs, inputs);
}
inline Kernel linear_input_gradient(std::int64_t rows, std::int64_t outputs, std::int64_t inputs, DType type) {
  return lying_along(gemm(rows, inputs, outputs, type), outputs, inputs);
}
inline Kernel linear_weight_gradient(std::int64_t rows, std::int64_t outputs, std::int64_t inputs, DType type) {
  return lying_along(gemm(outputs, inputs, rows, type), outputs, inputs);
}

// As many products of [m, k] times [k, n], with operands of their own.
inline Kernel batched_gemm(std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k, DType type) {
  Kernel kernel = gemm(batch * m, n, k, type);
  kernel.bytes += (batch - 1) * k * n * size_of(type);
  return kernel;
}

// Fused attention of `queries` rows over `keys` rows a head. Forward multiplies twice (scores, output). Causal masks
// are not subtracted from flops, as flop_counter does not.
inline Kernel attention_forward(std::int64_t heads, std::int64_t queries, std::int64_t keys, std::int64_t head_size,
                                DType type, bool causal) {
  Kernel kernel;
  kernel.kind = KernelKind::Attention;
  kernel.m = heads, kernel.n = queries, kernel.k = head_size, kernel.keys = keys;
  kernel.causal = causal;
  kernel.flops = counted({2, 2, heads, queries, keys, head_size});
  kernel.bytes = heads * head_size * (2 * queries + 2 * keys) * size_of(type) + heads * queries * size_of(DType::F32);
  return kernel;
}

// Backward multiplies five times: scores again, and the gradients of value, scores, key and query.
inline Kernel attention_backward(std::int64_t heads, std::int64_t queries, std::int64_t keys, std::int64_t head_size,
                                 DType type, bool causal) {
  Kernel kernel = attention_forward(heads, queries, keys, head_size, type, causal);
  kernel.backward = true;
  kernel.flops = counted({5, 2, heads, queries, keys, head_size});
  kernel.bytes = heads * head_size * (4 * queries + 4 * keys) * size_of(type) + heads * queries * size_of(DType::F32);
  return kernel;
}

inline Kernel memory_kernel(std::int64_t bytes) {
  Kernel kernel;
  kernel.kind = KernelKind::Memory;
  kernel.bytes = bytes;
  return kernel;
}

// A norm of rows, or a sum over them: threads that share a row, or a column, wait for each other.
inline Kernel row_kernel(std::int64_t rows, std::int64_t bytes) {
  Kernel kernel = memory_kernel(bytes);
  kernel.rows = rows;
  return kernel;
}

// A log softmax of fp32 numbers over each row, or its backward, which reads the result and the gradient.
inline Kernel softmax_kernel(std::int64_t rows, std::int64_t columns, bool backward) {
  Kernel kernel = memory_kernel(counted({backward ? 3 : 2, rows, columns, size_of(DType::F32)}));
  kernel.m = rows, kernel.n = columns;
  kernel.backward = backward;
  return kernel;
}

inline Kernel optimizer_kernel(std::int64_t elements, std::int64_t bytes) {
  Kernel kernel;
  kernel.kind = KernelKind::Optimizer;
  kernel.elements = elements;
  kernel.bytes = bytes;
  return kernel;
}

// A stage of the input pipeline on `items`, of so many units together; `bytes` of memory where a device does it.
inline Kernel input_kernel(std::size_t stage, std::int64_t items, std::int64_t units, std::int64_t bytes) {
  Kernel kernel;
  kernel.kind = KernelKind::Media;
  kernel.stage = static_cast<std::int64_t>(stage);
  kernel.items = items, kernel.elements = units, kernel.bytes = bytes;
  return kernel;
}

inline Kernel fixed_kernel(std::int64_t ns) {
  Kernel kernel;
  kernel.kind = KernelKind::Fixed;
  kernel.fixed_ns = ns;
  return kernel;
}

}  // namespace tandem
