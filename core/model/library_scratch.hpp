// What the libraries under LibTorch take for themselves during a product. Must not know primitives.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/dtype.hpp"

namespace tandem {

// Processors with units that want operands in an order of their own (AMX) have more threads than this; the smaller ones
// that were seen had none.
inline constexpr std::int64_t kMostThreadsWithoutTiles = 8;

// oneDNN's tiles during a product in 16 bits on the CPU, by so many threads, at most. Seen: 256 KiB with up to four
// threads, and 2.4 MiB with 16 on a processor with AMX, where each thread keeps parts of operands in their own order.
inline std::int64_t cpu_tile_bytes(std::int64_t threads) {
  constexpr std::int64_t kAll = 256 << 10, kEachMore = 288 << 10;
  return kAll + std::max<std::int64_t>(0, threads - kMostThreadsWithoutTiles) * kEachMore;
}

// cuBLAS's, for a product that is cut along its inner dimension on a GPU, at most.
inline constexpr std::int64_t kGpuProductBytes = 32 << 20;

// oneDNN's, for [m, k] times [k, n] on the CPU: in 16 bits it keeps tiles of its own, and copies operands where the
// processor has units that want them in an order of their own (AMX), and sums in fp32. In fp32, MKL serves itself.
inline std::int64_t cpu_product_bytes(std::int64_t m, std::int64_t n, std::int64_t k, DType type,
                                      std::int64_t threads = 1) {
  return type == DType::F32 ? 0 : cpu_tile_bytes(threads) + (m * k + k * n + m * n) * size_of(DType::F32);
}

// LibTorch's, to copy a matrix of so many numbers into the order of its transpose on the CPU: it turns a block of 60 by
// 60 at a time, and smaller matrices without one (copy_transpose_valid in aten/src/ATen/native/Copy.cpp).
inline std::int64_t cpu_turning_bytes(std::int64_t elements, DType type) {
  constexpr std::int64_t kBlock = 60 * 60;
  return elements < kBlock ? 0 : kBlock * size_of(type);
}

// LibTorch makes tensors of the numbers that a body gives to its kernels, in the types of both sides.
inline constexpr std::int64_t kNumberBytes = 256;

// What LibTorch takes on a GPU to sum many numbers to few, at most: a sum in fp32 of each of the groups of threads that
// fill it, and their counters.
inline constexpr std::int64_t kGpuSumBytes = 2 << 20;

// Of a mean over some of a value's directions, or its gradient: the CPU's kernels widen 16 bits.
inline std::int64_t mean_bytes(std::int64_t elements, DType type, bool gpu) {
  if (gpu) return kGpuSumBytes;
  return type == DType::F32 ? 0 : elements * size_of(DType::F32);
}

}  // namespace tandem
